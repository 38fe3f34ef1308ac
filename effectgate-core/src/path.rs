//! Paths as text alone: nothing is looked up, and no link is followed.

/// Directories that every user can write to.
pub(crate) const SHARED: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Where the kernel makes files up when they are asked for.
pub(crate) const OF_KERNEL: [&str; 2] = ["/proc", "/sys"];

/// The directory itself, or anything below it; both in normal form.
pub(crate) fn contains<P: AsRef<[u8]> + ?Sized>(
    root: &P,
    path: &(impl AsRef<[u8]> + ?Sized),
) -> bool {
    let (root, path) = (root.as_ref(), path.as_ref());
    root == b"/" || path.strip_prefix(root).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

/// A path below `base`, or an absolute one, without `.`, `..` and repeated slashes.
pub(crate) fn normal(base: &str, path: &str) -> String {
    let base = if path.starts_with('/') { "" } else { base };
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            // Above the root is the root.
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_form() {
        for (base, path, want) in [
            ("/w", ".", "/w"),
            ("/w", "a//b/./c/", "/w/a/b/c"),
            ("/w", "a/../../x", "/x"),
            ("/w", "../../../..", "/"),
            ("/w", "/etc", "/etc"),
            ("/", "/", "/"),
        ] {
            assert_eq!(normal(base, path), want);
        }
    }

    #[test]
    fn containment() {
        for (root, path) in [("/", "/x"), ("/w", "/w"), ("/w", "/w/x"), ("a", "a/b")] {
            assert!(contains(root, path), "{root} {path}");
        }
        for (root, path) in [("/w", "/wx"), ("/w/x", "/w"), ("a", "ab")] {
            assert!(!contains(root, path), "{root} {path}");
        }
    }
}
