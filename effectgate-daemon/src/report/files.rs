//! The files that a job touched, in the order in which a reader wants them.

use std::cmp::Reverse;

use effectgate_core::report::{GrantedRoot, Place, Report};

use super::tree::Tree;

/// The tree of names, with the sums of what is below each.
pub struct Files<'a> {
    report: &'a Report,
    pub sums: Vec<Place>,
}

impl<'a> Files<'a> {
    pub fn new(report: &'a Report) -> Files<'a> {
        Files { report, sums: report.places.sums() }
    }

    /// The names in the root directory.
    pub fn tops(&self) -> Vec<usize> {
        self.children(0)
    }

    fn place(&self, node: usize) -> &Place {
        &self.report.places.all[node]
    }

    /// The root of the policy that is exactly here.
    pub fn root(&self, node: usize) -> Option<&GrantedRoot> {
        let path = self.report.places.path(node);
        self.report.facts.roots.iter().find(|root| root.path == path)
    }

    pub fn touched(place: &Place) -> u64 {
        place.reads + place.changes + place.runs + place.unlisted
    }

    /// The names of a row: those of directories with nothing else in them.
    pub fn name(&self, node: usize) -> String {
        let mut names = vec![self.place(node).name.as_str()];
        let mut at = node;
        loop {
            let parent = self.place(at).parent;
            if parent == 0 || !self.is_passage(parent) {
                break;
            }
            names.push(self.place(parent).name.as_str());
            at = parent;
        }
        names.reverse();
        let slash = if self.place(at).parent == 0 { "/" } else { "" };
        let end = if self.place(node).children.is_empty() { "" } else { "/" };
        format!("{slash}{}{end}", names.join("/"))
    }

    /// A directory that only leads to another name.
    fn is_passage(&self, node: usize) -> bool {
        let place = self.place(node);
        place.children.len() == 1 && Files::touched(place) == 0 && self.root(node).is_none()
    }
}

impl Tree for Files<'_> {
    fn children(&self, node: usize) -> Vec<usize> {
        let mut children: Vec<usize> = self.place(node).children.values().copied().collect();
        children.sort_by_key(|child| {
            let sums = &self.sums[*child];
            (Reverse(sums.violations), Reverse(Files::touched(sums)))
        });
        children
    }

    fn shown(&self, mut node: usize) -> usize {
        while self.is_passage(node) {
            match self.place(node).children.values().next() {
                Some(only) => node = *only,
                None => break,
            }
        }
        node
    }

    fn is_marked(&self, node: usize) -> bool {
        self.sums[node].violations > 0
    }
}
