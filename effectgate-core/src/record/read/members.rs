//! The members of a record's objects, read one by one.

use std::net::IpAddr;

use serde_json::{Map, Value};

use crate::escape::unescape;
use crate::input::{Bytes, Class, Device, Known, UnixNanos};
use crate::record::read_number;

/// A value, or the name of the member that is not as it must be.
pub(crate) type Read<T> = Result<T, &'static str>;

/// An object's members, with errors that name the member.
pub(super) struct Members<'a>(&'a Map<String, Value>);

impl<'a> Members<'a> {
    pub fn of(value: &'a Value, name: &'static str) -> Read<Self> {
        value.as_object().map(Members).ok_or(name)
    }

    pub fn get(&self, key: &str) -> Option<&'a Value> {
        self.0.get(key)
    }

    pub fn value(&self, key: &'static str) -> Read<&'a Value> {
        self.get(key).ok_or(key)
    }

    pub fn members(&self, key: &'static str) -> Read<Members<'a>> {
        Members::of(self.value(key)?, key)
    }

    pub fn str(&self, key: &'static str) -> Read<&'a str> {
        self.value(key)?.as_str().ok_or(key)
    }

    pub fn string(&self, key: &'static str) -> Read<String> {
        self.str(key).map(str::to_owned)
    }

    pub fn word<T>(&self, key: &'static str, from_name: fn(&str) -> Option<T>) -> Read<T> {
        from_name(self.str(key)?).ok_or(key)
    }

    pub fn number(&self, key: &'static str) -> Read<u64> {
        read_number(self.value(key)?).ok_or(key)
    }

    pub fn small<T: TryFrom<u64>>(&self, key: &'static str) -> Read<T> {
        self.number(key)?.try_into().map_err(|_| key)
    }

    /// Written only when true.
    pub fn flag(&self, key: &'static str) -> Read<bool> {
        match self.get(key) {
            None => Ok(false),
            Some(Value::Bool(true)) => Ok(true),
            Some(_) => Err(key),
        }
    }

    /// [`crate::input::FileId::twin`], which is left out where it is 0.
    pub fn twin(&self) -> Read<u32> {
        if self.get("twin").is_some() { self.small("twin") } else { Ok(0) }
    }

    pub fn list<T>(&self, key: &'static str, read: impl Fn(&Value) -> Read<T>) -> Read<Vec<T>> {
        self.value(key)?.as_array().ok_or(key)?.iter().map(read).collect()
    }

    pub fn time(&self) -> Read<UnixNanos> {
        crate::time::parse(self.str("ts")?).ok_or("ts")
    }
}

pub(super) fn known(value: &Value) -> Read<Known> {
    let known = Members::of(value, "process")?;
    Ok(Known {
        pid: known.small("pid")?,
        ppid: known.small("ppid")?,
        start: known.number("start")?,
        exe: bytes(known.value("exe")?)?,
        comm: bytes(known.value("comm")?)?,
    })
}

pub(super) fn class(value: &Value) -> Read<Class> {
    value.as_str().and_then(Class::from_name).ok_or("class")
}

pub(super) fn address(value: &Value) -> Read<IpAddr> {
    value.as_str().and_then(|text| text.parse().ok()).ok_or("address")
}

pub(super) fn protocol(text: &str) -> Read<u32> {
    match text {
        "tcp" => Ok(6),
        "udp" => Ok(17),
        other => other.parse().map_err(|_| "protocol"),
    }
}

pub(super) fn device(value: &Value) -> Read<Device> {
    let parts = value.as_str().and_then(|text| text.split_once(':'));
    let device = parts.and_then(|(major, minor)| {
        Some(Device { major: major.parse().ok()?, minor: minor.parse().ok()? })
    });
    device.ok_or("dev")
}

pub(super) fn bytes(value: &Value) -> Read<Bytes> {
    value.as_str().and_then(unescape).ok_or("an escaped string")
}
