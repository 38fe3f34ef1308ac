"""Verifies a bundle's signed statement with nothing of EffectGate's own.

usage: verify.py BUNDLE PUBLIC_KEY

The envelope is verified by securesystemslib, statement and descriptors are
parsed by the protocol buffers of in-toto-attestation. Those have no message
for the predicate runtime-trace, so its fields are held against the table of
the specification (in-toto/attestation, spec/predicates/runtime-trace.md).
"""

import hashlib
import json
import pathlib
import re
import sys

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)
from google.protobuf import json_format
from in_toto_attestation.v1 import resource_descriptor_pb2, statement_pb2
from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
from in_toto_attestation.v1.statement import Statement
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

RUNTIME_TRACE = "https://in-toto.io/attestation/runtime-trace/v0.1"
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+")
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def descriptor(value):
    message = json_format.ParseDict(value, resource_descriptor_pb2.ResourceDescriptor())
    ResourceDescriptor.copy_from_pb(message).validate()
    # The specification asks for more than the package does.
    assert message.uri or message.digest or message.content, value
    assert not message.uri or URI.fullmatch(message.uri), message.uri
    return message


def runtime_trace(predicate):
    monitor = predicate["monitor"]
    assert URI.fullmatch(monitor["type"]), monitor
    descriptor(monitor["configSource"])
    assert isinstance(monitor["tracePolicy"], dict)
    monitored = predicate["monitoredProcess"]
    assert URI.fullmatch(monitored["hostID"]) and URI.fullmatch(monitored["type"]), monitored
    assert isinstance(monitored["event"], str) and monitored["event"]
    log = predicate["monitorLog"]
    for name in ("process", "network"):
        assert all(isinstance(entry, dict) for entry in log[name]), name
    assert log["process"], "a command ran"
    for entry in log["fileAccess"]:
        assert descriptor(entry).name, entry
    for name in ("buildStartedOn", "buildFinishedOn"):
        assert TIMESTAMP.fullmatch(predicate["metadata"][name]), name


def main(bundle, key):
    bundle = pathlib.Path(bundle)
    public = load_pem_public_key(pathlib.Path(key).read_bytes())
    keyid = hashlib.sha256(
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    ).hexdigest()
    envelope = Envelope.from_dict(json.loads((bundle / "statement.dsse.json").read_bytes()))
    envelope.verify([SSlibKey.from_crypto(public, keyid)], 1)
    assert envelope.payload_type == "application/vnd.in-toto+json"

    message = json_format.Parse(envelope.payload, statement_pb2.Statement())
    statement = Statement.copy_from_pb(message)
    statement.validate()
    assert message.predicate_type == RUNTIME_TRACE
    runtime_trace(json_format.MessageToDict(message)["predicate"])

    for subject in message.subject:
        content = (bundle / subject.name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == subject.digest["sha256"], subject.name
    print(f"{len(message.subject)} subjects, {len(envelope.payload)} bytes")


main(*sys.argv[1:])
