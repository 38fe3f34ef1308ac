//! Offsets of kernel structure members, from BTF
//! (`Documentation/bpf/btf.rst`). aya parses BTF too but keeps members private.

use std::collections::HashMap;

use anyhow::{Context, Result, bail, ensure};

const MAGIC: u16 = 0xeb9f;

// `BTF_KIND_…` of include/uapi/linux/btf.h
const INT: u32 = 1;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const TYPEDEF: u32 = 8;
const VOLATILE: u32 = 9;
const CONST: u32 = 10;
const FUNC: u32 = 12;
const FUNC_PROTO: u32 = 13;
const VAR: u32 = 14;
const DATASEC: u32 = 15;
const DECL_TAG: u32 = 17;
const TYPE_TAG: u32 = 18;
const ENUM64: u32 = 19;

/// A parsed BTF blob.
#[derive(Debug)]
pub struct Btf<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    /// Where each type starts; id 1 is the first.
    starts: Vec<usize>,
    structs: HashMap<&'a [u8], u32>,
}

#[derive(Clone, Copy)]
struct Type {
    start: usize,
    name: u32,
    kind: u32,
    flag: bool,
    members: usize,
    /// Size in bytes, or the type referred to.
    size_or_type: u32,
}

impl<'a> Btf<'a> {
    /// # Errors
    /// When the bytes are not BTF or end too early.
    pub fn parse(bytes: &'a [u8]) -> Result<Btf<'a>> {
        ensure!(half(bytes, 0)? == MAGIC, "no BTF: bad magic number");
        let header = word(bytes, 4)? as usize;
        let section = |at: usize| -> Result<&'a [u8]> {
            let start = header + word(bytes, at)? as usize;
            bytes.get(start..start + word(bytes, at + 4)? as usize).context("BTF section cut off")
        };
        let types = section(8)?;
        let strings = section(16)?;
        let mut btf = Btf { types, strings, starts: Vec::new(), structs: HashMap::new() };
        let mut at = 0;
        while at < types.len() {
            let ty = btf.type_at(at)?;
            btf.starts.push(at);
            if ty.kind == STRUCT && ty.name != 0 {
                btf.structs.entry(btf.name(ty.name)).or_insert(btf.starts.len() as u32);
            }
            at += 12 + extra(ty)?;
        }
        Ok(btf)
    }

    /// Offset in bytes of `path` (members separated by `.`) in `struct name`.
    ///
    /// # Errors
    /// When there is no such structure or member, or it is a bit field.
    pub fn offset(&self, name: &str, path: &str) -> Result<u64> {
        let mut id = *self
            .structs
            .get(name.as_bytes())
            .with_context(|| format!("no struct {name} in BTF"))?;
        let mut bits = 0;
        for member in path.split('.') {
            let (at, ty) = self
                .member(id, member.as_bytes(), 0)?
                .with_context(|| format!("struct {name} has no member {path}"))?;
            bits += at;
            id = ty;
        }
        ensure!(bits % 8 == 0, "{name}.{path} is a bit field");
        Ok(bits / 8)
    }

    /// Position of a parameter of `function`, 0 for the first.
    ///
    /// # Errors
    /// When there is no such function or parameter.
    pub fn parameter(&self, function: &str, parameter: &str) -> Result<u64> {
        let named = |start: &usize| {
            let ty = self.type_at(*start).ok()?;
            (ty.kind == FUNC && self.name(ty.name) == function.as_bytes()).then_some(ty)
        };
        let found = self.starts.iter().find_map(named);
        let prototype = self
            .get(found.with_context(|| format!("no function {function} in BTF"))?.size_or_type)?;
        for index in 0..prototype.members {
            let name = word(self.types, prototype.start + 12 + index * 8)?;
            if self.name(name) == parameter.as_bytes() {
                return Ok(index as u64);
            }
        }
        bail!("{function} has no parameter {parameter}")
    }

    /// Size in bytes of `struct name`.
    ///
    /// # Errors
    /// When there is no such structure.
    pub fn size(&self, name: &str) -> Result<u64> {
        let id = self.structs.get(name.as_bytes()).with_context(|| format!("no struct {name}"))?;
        Ok(u64::from(self.get(*id)?.size_or_type))
    }

    /// Bit offset and type of a member, passing through anonymous members.
    fn member(&self, id: u32, wanted: &[u8], depth: usize) -> Result<Option<(u64, u32)>> {
        ensure!(depth < 16, "BTF nests too deep");
        let ty = self.strip(id)?;
        if ty.kind != STRUCT && ty.kind != UNION {
            return Ok(None);
        }
        for index in 0..ty.members {
            let at = ty.start + 12 + index * 12;
            let name = self.name(word(self.types, at)?);
            let member_type = word(self.types, at + 4)?;
            let raw = word(self.types, at + 8)?;
            // With the kind flag the upper byte is the width of a bit field.
            let bits = u64::from(if ty.flag { raw & 0xff_ffff } else { raw });
            if name == wanted {
                return Ok(Some((bits, member_type)));
            }
            if name.is_empty()
                && let Some((inner, found)) = self.member(member_type, wanted, depth + 1)?
            {
                return Ok(Some((bits + inner, found)));
            }
        }
        Ok(None)
    }

    /// The type behind typedefs and qualifiers.
    fn strip(&self, mut id: u32) -> Result<Type> {
        for _ in 0..16 {
            let ty = self.get(id)?;
            if !matches!(ty.kind, TYPEDEF | VOLATILE | CONST | TYPE_TAG) {
                return Ok(ty);
            }
            id = ty.size_or_type;
        }
        bail!("BTF qualifiers nest too deep")
    }

    fn get(&self, id: u32) -> Result<Type> {
        let start = (id as usize).checked_sub(1).and_then(|i| self.starts.get(i));
        self.type_at(*start.context("BTF type id out of range")?)
    }

    fn type_at(&self, start: usize) -> Result<Type> {
        let info = word(self.types, start + 4)?;
        Ok(Type {
            start,
            name: word(self.types, start)?,
            kind: info >> 24 & 0x1f,
            flag: info >> 31 == 1,
            members: info as usize & 0xffff,
            size_or_type: word(self.types, start + 8)?,
        })
    }

    fn name(&self, at: u32) -> &'a [u8] {
        let rest = self.strings.get(at as usize..).unwrap_or_default();
        rest.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

/// Bytes that follow a type's first twelve.
fn extra(ty: Type) -> Result<usize> {
    Ok(match ty.kind {
        INT | VAR | DECL_TAG => 4,
        ARRAY => 12,
        STRUCT | UNION | DATASEC | ENUM64 => ty.members * 12,
        ENUM | FUNC_PROTO => ty.members * 8,
        2 | 7..=12 | 16 | 18 => 0,
        kind => bail!("BTF kind {kind} is not known"),
    })
}

fn half(bytes: &[u8], at: usize) -> Result<u16> {
    let two = bytes.get(at..at + 2).context("BTF cut off")?;
    Ok(u16::from_ne_bytes([two[0], two[1]]))
}

fn word(bytes: &[u8], at: usize) -> Result<u32> {
    let four = bytes.get(at..at + 4).context("BTF cut off")?;
    Ok(u32::from_ne_bytes([four[0], four[1], four[2], four[3]]))
}

#[cfg(test)]
mod tests {
    use effectgate_common::offsets::{OFFSETS, PARAMETERS};

    use super::*;

    #[test]
    fn the_running_kernel_has_every_offset() {
        let bytes = std::fs::read("/sys/kernel/btf/vmlinux").expect("this kernel has BTF");
        let btf = Btf::parse(&bytes).expect("it parses");
        for offset in OFFSETS {
            let found = btf.offset(offset.ty, offset.member);
            assert!(found.is_ok(), "{}: {found:?}", offset.symbol);
        }
        for parameter in PARAMETERS {
            let found = btf.parameter(parameter.ty, parameter.member);
            assert!(found.is_ok(), "{}: {found:?}", parameter.symbol);
        }
        assert!(btf.parameter("bpf_lsm_file_open", "nothing").is_err());
        assert!(btf.parameter("no_such_function", "file").is_err());
    }

    #[test]
    fn cut_and_foreign_bytes_are_errors() {
        assert!(Btf::parse(b"").is_err());
        assert!(Btf::parse(b"\x7fELF\x02\x01\x01\x00").is_err());
        let bytes = std::fs::read("/sys/kernel/btf/vmlinux").expect("this kernel has BTF");
        for cut in [1, 7, 23, 24, 100, bytes.len() / 2, bytes.len() - 1] {
            assert!(Btf::parse(&bytes[..cut]).is_err(), "cut at {cut}");
        }
    }
}
