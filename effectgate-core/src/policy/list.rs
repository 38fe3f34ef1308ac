//! A list of a policy that is its own table: finding an entry costs the same
//! whatever its length.

use std::collections::HashMap;

use super::{Binary, Host, Tool};

/// A key of a policy file, as rules cite it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub name: &'static str,
    /// From 1; 0 for what is built in and stands in no file.
    pub line: u32,
}

/// One list of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<T> {
    pub key: Key,
    entries: Vec<Entry<T>>,
    /// By what entries are looked for; indices into them, in their order.
    index: HashMap<String, Vec<usize>>,
}

/// One entry of a list, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<T> {
    pub value: T,
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
}

/// What an entry is looked for by.
pub trait Named {
    /// Entries that differ only in something else, such as the port, share it.
    fn name(&self) -> String;
}

impl<T: Named> List<T> {
    pub fn new(key: Key, entries: Vec<Entry<T>>) -> Self {
        let mut index: HashMap<String, Vec<usize>> = HashMap::with_capacity(entries.len());
        for (at, entry) in entries.iter().enumerate() {
            index.entry(entry.value.name()).or_default().push(at);
        }
        List { key, entries, index }
    }

    /// In the order of the file.
    pub fn entries(&self) -> &[Entry<T>] {
        &self.entries
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The first entry of this name.
    pub fn find(&self, name: &str) -> Option<&Entry<T>> {
        self.all(name).next()
    }

    /// Every entry of this name.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Entry<T>> + use<'a, T> {
        let found = self.index.get(name).map(Vec::as_slice).unwrap_or_default();
        found.iter().filter_map(|at| self.entries.get(*at))
    }
}

impl Named for String {
    fn name(&self) -> String {
        self.clone()
    }
}

impl Named for Host {
    fn name(&self) -> String {
        self.name.to_string()
    }
}

impl Named for Binary {
    fn name(&self) -> String {
        self.name.clone()
    }
}

impl Named for Tool {
    fn name(&self) -> String {
        self.name.clone()
    }
}
