//! Against the definitions of RFC 6962, written down as they stand there, and
//! against the reference values of Certificate Transparency's own tests.

use proptest::prelude::*;

use super::*;
use crate::pin::hex;

/// `MTH`, RFC 6962, 2.1.
fn head(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => Sha256::digest(b"").into(),
        [one] => *one,
        _ => {
            let k = split(leaves.len());
            node(&head(&leaves[..k]), &head(&leaves[k..]))
        }
    }
}

/// The largest power of two smaller than `n`.
fn split(n: usize) -> usize {
    let mut k = 1;
    while k * 2 < n {
        k *= 2;
    }
    k
}

/// `PATH`, RFC 6962, 2.1.1.
fn path(m: usize, leaves: &[Hash]) -> Vec<Hash> {
    if leaves.len() == 1 {
        return Vec::new();
    }
    let k = split(leaves.len());
    if m < k {
        [path(m, &leaves[..k]), vec![head(&leaves[k..])]].concat()
    } else {
        [path(m - k, &leaves[k..]), vec![head(&leaves[..k])]].concat()
    }
}

/// `SUBPROOF`, RFC 6962, 2.1.2; `PROOF` begins with `b` true.
fn subproof(m: usize, leaves: &[Hash], b: bool) -> Vec<Hash> {
    if m == leaves.len() {
        return if b { Vec::new() } else { vec![head(leaves)] };
    }
    let k = split(leaves.len());
    if m <= k {
        [subproof(m, &leaves[..k], b), vec![head(&leaves[k..])]].concat()
    } else {
        [subproof(m - k, &leaves[k..], false), vec![head(&leaves[..k])]].concat()
    }
}

fn leaves(count: usize) -> Vec<Hash> {
    (0..count).map(|n| leaf(n.to_string().as_bytes())).collect()
}

fn tree(leaves: &[Hash]) -> Tree {
    let mut tree = Tree::default();
    leaves.iter().for_each(|leaf| tree.push(*leaf));
    tree
}

fn roots(ranges: Option<Vec<Range<u64>>>, leaves: &[Hash]) -> Vec<Hash> {
    let mut roots = Roots::new(ranges.expect("such a proof exists"));
    leaves.iter().for_each(|leaf| roots.push(*leaf));
    roots.finish().expect("all leaves were there")
}

#[test]
fn the_reference_trees_come_out() {
    let records: [&[u8]; 8] = [
        b"",
        b"\x00",
        b"\x10",
        b"\x20\x21",
        b"\x30\x31",
        b"\x40\x41\x42\x43",
        b"\x50\x51\x52\x53\x54\x55\x56\x57",
        b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
    ];
    let mut tree = Tree::default();
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(hex(&tree.root()), empty);
    for (record, root) in records.iter().zip([
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ]) {
        tree.push(leaf(record));
        assert_eq!(hex(&tree.root()), root);
    }
}

#[test]
fn every_small_proof_is_the_one_of_the_definition_and_no_other_place_takes_it() {
    for size in 1..=33 {
        let leaves = leaves(size);
        let root = head(&leaves);
        assert_eq!(tree(&leaves).root(), root);
        let size = size as u64;
        for index in 0..size {
            let proof = roots(inclusion(index, size), &leaves);
            assert_eq!(proof, path(index as usize, &leaves), "{index} of {size}");
            for other in 0..size {
                let leaf = leaves[other as usize];
                let holds = includes(&root, size, index, leaf, &proof);
                assert_eq!(holds, other == index, "{other} for {index} of {size}");
                assert!(!includes(&root, size, other, leaf, &proof) || other == index);
            }
        }
        for old in 1..=size {
            let proof = roots(consistency(old, size), &leaves);
            assert_eq!(proof, subproof(old as usize, &leaves, true), "{old} of {size}");
            let before = head(&leaves[..old as usize]);
            assert!(continues((old, &before), (size, &root), &proof), "{old} of {size}");
            for other in (1..size).filter(|other| *other != old) {
                let holds = continues((other, &before), (size, &root), &proof);
                assert!(!holds, "{other} for {old} of {size}");
            }
        }
    }
}

#[test]
fn what_is_not_there_has_no_proof() {
    assert_eq!(inclusion(0, 0), None);
    assert_eq!(inclusion(5, 5), None);
    assert_eq!(consistency(0, 5), None);
    assert_eq!(consistency(6, 5), None);
    assert_eq!(Roots::new(vec![0..2, 2..3]).finish(), None);
    let (one, nothing) = (leaf(b"a"), Tree::default().root());
    assert!(!includes(&nothing, 0, 0, one, &[]));
    assert!(!continues((0, &nothing), (1, &one), &[]));
    assert!(!continues((2, &one), (1, &one), &[]));
}

proptest! {
    #[test]
    fn large_trees_are_those_of_the_definition(size in 1..2000_usize, at: u64, flip: u8, bit: u16) {
        let leaves = leaves(size);
        let root = head(&leaves);
        prop_assert_eq!(tree(&leaves).root(), root);
        let (size, at) = (size as u64, at % size as u64);
        let mut proof = roots(inclusion(at, size), &leaves);
        prop_assert_eq!(&proof, &path(at as usize, &leaves));
        prop_assert!(includes(&root, size, at, leaves[at as usize], &proof));
        let before = head(&leaves[..=at as usize]);
        let mut grown = roots(consistency(at + 1, size), &leaves);
        prop_assert_eq!(&grown, &subproof(at as usize + 1, &leaves, true));
        prop_assert!(continues((at + 1, &before), (size, &root), &grown));
        // One bit anywhere, or one hash more or less, and it proves nothing.
        for proof in [&mut proof, &mut grown] {
            if proof.is_empty() {
                continue;
            }
            let n = usize::from(flip) % proof.len();
            proof[n][usize::from(bit) / 8 % 32] ^= 1 << (bit % 8);
        }
        prop_assert!(proof.is_empty() || !includes(&root, size, at, leaves[at as usize], &proof));
        prop_assert!(grown.is_empty() || !continues((at + 1, &before), (size, &root), &grown));
        proof.push(root);
        prop_assert!(!includes(&root, size, at, leaves[at as usize], &proof));
    }

    #[test]
    fn arbitrary_proofs_prove_nothing(
        size: u64, index: u64, old: u64, proof in prop::collection::vec(any::<Hash>(), 0..70),
    ) {
        let (one, root) = (leaf(b"a"), leaf(b"b"));
        prop_assert!(!includes(&root, size, index, one, &proof));
        prop_assert!(!continues((old, &one), (size, &root), &proof));
        prop_assert!(inclusion(index % size.max(1), size).is_none_or(|proof| proof.len() <= 64));
        prop_assert!(consistency(old, size).is_none_or(|proof| proof.len() <= 65));
    }
}
