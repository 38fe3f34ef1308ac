//! The pinned kernels: exact packages, so that a failing test means changed
//! code and never a changed kernel.

use std::fmt;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

/// Where the pins are, for messages.
pub const FILE: &str = "xtask/kernels.json";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    kernels: Vec<Kernel>,
}

/// One kernel, named by the series that it stands for.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    pub name: String,
    pub packages: Vec<Package>,
}

/// A Debian package, to the byte.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    pub package: String,
    pub version: String,
    pub suite: String,
    pub sha256: String,
}

impl Pins {
    pub fn read() -> Result<Self> {
        Self::parse(include_str!("../../kernels.json"))
    }

    fn parse(text: &str) -> Result<Self> {
        let pins: Self =
            serde_json::from_str(text).with_context(|| format!("cannot read {FILE}"))?;
        for kernel in &pins.kernels {
            if kernel.packages.is_empty() {
                bail!("{FILE}: kernel {} has no packages", kernel.name);
            }
            for Package { package, sha256, .. } in &kernel.packages {
                if sha256.len() != 64 || !sha256.bytes().all(|b| b.is_ascii_hexdigit()) {
                    bail!("{FILE}: {package}: `{sha256}` is not a SHA-256 in hexadecimal");
                }
            }
        }
        Ok(pins)
    }

    pub fn all(&self) -> &[Kernel] {
        &self.kernels
    }

    /// The kernels of these names; `all` is every one.
    pub fn select(&self, names: &[String]) -> Result<Vec<&Kernel>> {
        if names.iter().any(|name| name == "all") {
            return Ok(self.kernels.iter().collect());
        }
        names
            .iter()
            .map(|name| {
                self.kernels.iter().find(|kernel| kernel.name == *name).with_context(|| {
                    let known: Vec<_> = self.kernels.iter().map(|k| k.name.as_str()).collect();
                    format!("no kernel `{name}` in {FILE}; there are {}", known.join(", "))
                })
            })
            .collect()
    }

    /// Every suite that a package comes from, once.
    pub fn suites(&self) -> Vec<&str> {
        let mut suites: Vec<_> =
            self.kernels.iter().flat_map(|k| &k.packages).map(|p| p.suite.as_str()).collect();
        suites.sort_unstable();
        suites.dedup();
        suites
    }
}

impl fmt::Display for Pins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for kernel in &self.kernels {
            for (index, package) in kernel.packages.iter().enumerate() {
                let name = if index == 0 { kernel.name.as_str() } else { "" };
                let Package { package, version, suite, .. } = package;
                writeln!(f, "{name:<6}{package} {version} ({suite})")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pin_file_is_good() {
        let pins = Pins::read().unwrap();
        assert!(pins.select(&["all".into()]).unwrap().len() >= 3);
        assert!(pins.select(&["6.1".into()]).is_ok());
    }

    #[test]
    fn an_unknown_kernel_is_answered_with_the_known_ones() {
        let error = Pins::read().unwrap().select(&["2.4".into()]).unwrap_err().to_string();
        assert!(error.contains("2.4") && error.contains("6.1"), "{error}");
    }

    #[test]
    fn a_wrong_digest_or_key_is_refused() {
        let bad = r#"{"kernels":[{"name":"1","packages":[
            {"package":"p","version":"1","suite":"s","sha256":"abc"}]}]}"#;
        assert!(Pins::parse(bad).unwrap_err().to_string().contains("not a SHA-256"));
        assert!(Pins::parse(r#"{"kernels":[],"extra":1}"#).is_err());
    }
}
