//! The members of an object, while their values are being read. Whatever is
//! of a wrong type is a fault already, and simply not there.

use super::check::usable;
use crate::tree::{Member, Node, Pos, Value};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    members: &'a [Member],
}

impl<'a> Fields<'a> {
    /// The members of a node; none when it is no object.
    pub fn of(node: &'a Node) -> Self {
        match &node.value {
            Value::Object(members) => Fields { members },
            _ => Fields { members: &[] },
        }
    }

    /// The first member of this key.
    pub fn get(self, key: &str) -> Option<&'a Member> {
        self.members.iter().find(|member| member.key == key)
    }

    /// Where the key stands.
    pub fn at(self, key: &str) -> Option<Pos> {
        Some(self.get(key)?.at)
    }

    /// In the order of the file.
    pub fn members(self) -> &'a [Member] {
        self.members
    }

    pub fn object(self, key: &str) -> Option<Fields<'a>> {
        self.get(key).map(|member| Fields::of(&member.value))
    }

    /// A string and its place.
    pub fn text(self, key: &str) -> Option<(Pos, &'a str)> {
        let node = &self.get(key)?.value;
        Some((node.at, node.text()?))
    }

    pub fn flag(self, key: &str) -> Option<bool> {
        match self.get(key)?.value.value {
            Value::Bool(flag) => Some(flag),
            _ => None,
        }
    }

    /// A whole number and its place.
    pub fn count(self, key: &str) -> Option<(Pos, u64)> {
        let node = &self.get(key)?.value;
        Some((node.at, node.count()?))
    }

    /// The items of a list.
    pub fn list(self, key: &str) -> Option<&'a [Node]> {
        match &self.get(key)?.value.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// The strings of a list, with their places.
    pub fn texts(self, key: &str) -> Option<Vec<(Pos, &'a str)>> {
        let items = self.list(key)?;
        Some(items.iter().filter_map(|item| Some((item.at, item.text()?))).collect())
    }
}

impl Node {
    /// A string, unless the check of the form found it unusable.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) if usable(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number that fits; `None` for any other.
    pub fn count(&self) -> Option<u64> {
        match &self.value {
            Value::Number(text) => text.parse().ok(),
            _ => None,
        }
    }
}
