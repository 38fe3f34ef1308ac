//! Whom the command runs as.

use std::{
    ffi::{CStr, CString, OsString},
    os::unix::ffi::OsStringExt,
};

use anyhow::{Context, Result, bail};

/// A user of the password database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub name: OsString,
    pub uid: u32,
    pub gid: u32,
    pub groups: Vec<u32>,
    pub home: OsString,
}

/// The user named, else the one who called sudo, else nobody else.
///
/// # Errors
/// When there is no such user, or sudo's variables make no sense.
pub fn to_run_as(name: Option<&str>) -> Result<Option<User>> {
    if let Some(name) = name {
        let c_name = CString::new(name).context("a user name with a NUL in it")?;
        // SAFETY: a NUL-terminated string that outlives the call.
        return User::from(unsafe { libc::getpwnam(c_name.as_ptr()) })
            .map(Some)
            .with_context(|| format!("no user {name}"));
    }
    let Some(uid) = std::env::var_os("SUDO_UID") else { return Ok(None) };
    let Some(uid) = uid.to_str().and_then(|uid| uid.parse().ok()) else {
        bail!("SUDO_UID is no user id; name the user with --user");
    };
    if uid == 0 {
        return Ok(None);
    }
    // SAFETY: a plain number.
    let user = User::from(unsafe { libc::getpwuid(uid) });
    user.map(Some).with_context(|| {
        format!(
            "the user {uid} who called sudo is not in the password database; name one with --user"
        )
    })
}

impl User {
    fn from(entry: *const libc::passwd) -> Option<User> {
        // SAFETY: null or an entry that is valid until the next call; this
        // runs before any other thread asks the database.
        let entry = unsafe { entry.as_ref() }?;
        // SAFETY: the strings of an entry are NUL-terminated.
        let (name, home) = unsafe { (CStr::from_ptr(entry.pw_name), CStr::from_ptr(entry.pw_dir)) };
        // Copied before the database is asked again, which reuses the entry.
        let (name, home) = (name.to_owned(), home.to_owned());
        let (uid, gid) = (entry.pw_uid, entry.pw_gid);
        Some(User {
            groups: groups(&name, gid),
            name: OsString::from_vec(name.into_bytes()),
            uid,
            gid,
            home: OsString::from_vec(home.into_bytes()),
        })
    }
}

fn groups(name: &CStr, gid: u32) -> Vec<u32> {
    let mut count = 64;
    loop {
        let mut groups = vec![0; count as usize];
        // SAFETY: room for `count` groups, and `count` says so.
        let got =
            unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &raw mut count) };
        if got >= 0 {
            groups.truncate(count as usize);
            return groups;
        }
    }
}
