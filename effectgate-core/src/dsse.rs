//! DSSE, the envelope around a signed statement (secure-systems-lab/dsse 1.0).

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde::{Deserialize, Serialize};

/// The payload is an in-toto Statement.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// An envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub payload_type: String,
    pub payload: Vec<u8>,
    pub signatures: Vec<Signature>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// A hint, which nothing vouches for.
    pub keyid: String,
    pub sig: Vec<u8>,
}

/// Why bytes are no envelope.
#[derive(Debug, thiserror::Error)]
pub enum DsseError {
    #[error("it is no DSSE envelope: {0}")]
    Form(#[from] serde_json::Error),
    #[error("its {0} is no Base64")]
    Base64(&'static str),
    #[error("it holds more than 16 signatures")]
    Crowd,
}

/// Signatures of an envelope that are read: to verify one costs as much as to
/// read all of the payload.
const SIGNATURES: usize = 16;

/// What is signed: type and payload with their lengths, so that neither can be
/// taken for a part of the other.
pub fn pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {payload_type} ", payload_type.len()).into_bytes();
    bytes.extend_from_slice(payload.len().to_string().as_bytes());
    bytes.push(b' ');
    bytes.extend_from_slice(payload);
    bytes
}

impl Envelope {
    /// # Errors
    /// [`DsseError`].
    pub fn parse(bytes: &[u8]) -> Result<Envelope, DsseError> {
        let written: Written = serde_json::from_slice(bytes)?;
        if written.signatures.len() > SIGNATURES {
            return Err(DsseError::Crowd);
        }
        let signature = |one: WrittenSignature| -> Result<Signature, DsseError> {
            let sig = decode(&one.sig).ok_or(DsseError::Base64("signature"))?;
            Ok(Signature { keyid: one.keyid, sig })
        };
        Ok(Envelope {
            payload: decode(&written.payload).ok_or(DsseError::Base64("payload"))?,
            payload_type: written.payload_type,
            signatures: written
                .signatures
                .into_iter()
                .map(signature)
                .collect::<Result<_, DsseError>>()?,
        })
    }

    /// As it is written to a file, with a newline at the end.
    pub fn format(&self) -> String {
        let signatures = self.signatures.iter().map(|one| WrittenSignature {
            keyid: one.keyid.clone(),
            sig: STANDARD.encode(&one.sig),
        });
        let written = Written {
            payload_type: self.payload_type.clone(),
            payload: STANDARD.encode(&self.payload),
            signatures: signatures.collect(),
        };
        // Strings and lists of strings cannot fail to serialise.
        serde_json::to_string(&written).unwrap_or_default() + "\n"
    }

    /// The bytes that each signature is of.
    pub fn signed(&self) -> Vec<u8> {
        pae(&self.payload_type, &self.payload)
    }
}

/// What is not known is passed over, as DSSE asks for.
#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(rename = "payloadType")]
    payload_type: String,
    payload: String,
    signatures: Vec<WrittenSignature>,
}

#[derive(Serialize, Deserialize)]
struct WrittenSignature {
    #[serde(default)]
    keyid: String,
    sig: String,
}

/// Either alphabet, as DSSE asks for.
fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The test vector of the DSSE protocol.
    #[test]
    fn the_protocols_own_example() {
        let bytes = pae("http://example.com/HelloWorld", b"hello world");
        assert_eq!(bytes, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
        let text = r#"{"payload": "aGVsbG8gd29ybGQ=", "payloadType": "http://example.com/HelloWorld",
            "signatures": [{"sig": "A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZKciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA=="}],
            "other": 1}"#;
        let envelope = Envelope::parse(text.as_bytes()).unwrap();
        assert_eq!(envelope.payload, b"hello world");
        assert_eq!(envelope.signatures[0].sig.len(), 64);
        assert_eq!(envelope.signatures[0].keyid, "");
        assert_eq!(envelope.signed(), bytes);
    }

    #[test]
    fn what_is_no_envelope() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"payload": "", "payloadType": "t"}"#,
            r#"{"payload": "*", "payloadType": "t", "signatures": []}"#,
            r#"{"payload": "", "payload": "", "payloadType": "t", "signatures": []}"#,
            r#"{"payload": "", "payloadType": "t", "signatures": [{"sig": "A"}]}"#,
            r#"{"payload": "", "payloadType": "t", "signatures": [{}]}"#,
        ] {
            assert!(Envelope::parse(text.as_bytes()).is_err(), "{text}");
        }
        let crowd = |count| {
            let signatures = vec![Signature { keyid: String::new(), sig: vec![0; 64] }; count];
            let envelope = Envelope { payload_type: "t".into(), payload: Vec::new(), signatures };
            Envelope::parse(envelope.format().as_bytes())
        };
        assert!(crowd(SIGNATURES).is_ok());
        assert!(matches!(crowd(SIGNATURES + 1), Err(DsseError::Crowd)));
    }

    proptest! {
        #[test]
        fn there_and_back(payload: Vec<u8>, payload_type: String, keyid: String, sig: Vec<u8>) {
            let signatures = vec![Signature { keyid, sig }];
            let envelope = Envelope { payload_type, payload, signatures };
            let read = Envelope::parse(envelope.format().as_bytes()).ok();
            prop_assert_eq!(read, Some(envelope));
        }

        #[test]
        fn any_bytes(bytes: Vec<u8>) {
            let _ = Envelope::parse(&bytes);
        }
    }
}
