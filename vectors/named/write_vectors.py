"""Writes packets.jsonl: packets as another implementation makes them, and what is in them.

Needs `pip install python-ndn==0.5.2`. The file is fixed: it is written anew only to add packets.

    python3 write_vectors.py > v1/packets.jsonl
"""

import json
import struct

from ndn import encoding as enc
from ndn.app_support import nfd_mgmt
from ndn.encoding import Component, InterestParam, MetaInfo, Name, ndnlp_v2
from ndn.security.signer import (
    Ed25519Signer,
    HmacSha256Signer,
    sha256_digest_signer,
)

TIME, NONCE = 1_700_000_000_123, 0x0102030405060708
sha256_digest_signer.timestamp = nfd_mgmt.timestamp = lambda: TIME
sha256_digest_signer.gen_nonce_64 = nfd_mgmt.gen_nonce_64 = lambda: NONCE

HMAC_KEY = bytes(range(32))
SEED = bytes(range(32, 64))
DER = b'0.\x02\x01\x000\x05\x06\x03+ep\x04"\x04 '
SIGNERS = {
    "digest": sha256_digest_signer.DigestSha256Signer(),
    "hmac": HmacSha256Signer("/keys/h", HMAC_KEY),
    "ed25519": Ed25519Signer("/keys/e/KEY/1", DER + SEED),
}
INTEREST_SIGNERS = SIGNERS | {
    "digest": sha256_digest_signer.DigestSha256Signer(for_interest=True)
}

NAMES = [
    "/a",
    "/game/0/anna/status/sync/7",
    "/typed/seg=1/off=70000/v=4294967296/t=1700000000000000/seq=255/32=word",
    "/%00%FF/a%20b/200=x/65535=y",
    "/" + "/".join(["long"] * 60),
    "/" + "x" * 300,
]


def line(kind, wire, **fields):
    print(json.dumps({"kind": kind, **fields, "wire": bytes(wire).hex()}))


def interest(name, parameters=None, signer=None, **fields):
    # Left out by this implementation's default otherwise.
    fields.setdefault("lifetime", None)
    hints = fields.pop("forwarding_hint", [])
    made = InterestParam(**fields, forwarding_hint=hints)
    wire, final = enc.make_interest(
        name, made, parameters, INTEREST_SIGNERS.get(signer), need_final_name=True
    )
    line(
        "interest",
        wire,
        name=name,
        full_name=Name.to_canonical_uri(final),
        parameters=None if parameters is None else parameters.hex(),
        signer=signer,
        forwarding_hint=hints,
        **fields,
    )
    return wire


def data(name, content=b"", signer="digest", final=None, **fields):
    block = None if final is None else Component.from_str(final)
    fields.setdefault("content_type", None)
    meta = MetaInfo(**fields, final_block_id=block) if final or any(fields.values()) else None
    # Empty elements are left out, as a default type is.
    wire = enc.make_data(name, meta, content or None, SIGNERS[signer])
    line("data", wire, name=name, content=content.hex(), signer=signer, final=final, **fields)
    return wire


def wrapped(packet, nack=None, **fields):
    value = ndnlp_v2.LpPacketValue()
    for field, content in fields.items():
        setattr(value, field, content)
    if nack is not None:
        value.nack = ndnlp_v2.NetworkNack()
        value.nack.nack_reason = nack or None
    value.fragment = packet
    whole = ndnlp_v2.LpPacket()
    whole.lp_packet = value
    shown = {k: v.hex() if isinstance(v, bytes) else v for k, v in fields.items()}
    line("link", whole.encode(), nack=nack, packet=bytes(packet).hex(), **shown)


for name in NAMES:
    interest(name)
    data(name)
for fields in [
    {"can_be_prefix": True},
    {"must_be_fresh": True},
    {"nonce": 0x01020304},
    {"lifetime": 0},
    {"lifetime": 255},
    {"lifetime": 1000},
    {"lifetime": 1 << 32},
    {"hop_limit": 0},
    {"hop_limit": 255},
    {"forwarding_hint": ["/isp/one", "/isp/two"]},
    {
        "can_be_prefix": True,
        "must_be_fresh": True,
        "forwarding_hint": ["/isp"],
        "nonce": 0xFFFFFFFF,
        "lifetime": 1000,
        "hop_limit": 3,
    },
]:
    interest("/game/0", **fields)
for parameters in [b"", b"fire", bytes(1000)]:
    interest("/interact/5/heal", parameters, nonce=7)
    for signer in INTEREST_SIGNERS:
        interest("/interact/5/heal", parameters, signer, nonce=7, must_be_fresh=True)

for fields in [
    {"content_type": 2},
    {"content_type": 1000},
    {"freshness_period": 20},
    {"freshness_period": 100_000},
    {"final": "seg=9"},
    {"content_type": 3, "freshness_period": 1, "final": "v=70000"},
]:
    data("/map/seg=9", b"content", **fields)
for content in [b"x", bytes(253), bytes(8000)]:
    for signer in SIGNERS:
        data("/signed", content, signer, freshness_period=1000)

packet = interest("/wrapped", nonce=9)
for reason in [0, 50, 100, 150, 7]:
    wrapped(packet, nack=reason)
wrapped(packet, pit_token=b"\x01")
wrapped(packet, pit_token=bytes(range(32)))
wrapped(packet, congestion_mark=1)
wrapped(packet, nack=150, pit_token=b"four", congestion_mark=300)
wrapped(packet, incoming_face_id=300, next_hop_face_id=1, non_discovery=True, tx_sequence=bytes(8))

command = nfd_mgmt.make_command_v2("rib", "register", name="/game/0/anna", cost=10, flags=3,
                                   origin=0, expiration_period=60000)
wire = enc.make_interest(command, InterestParam(must_be_fresh=True, nonce=5, lifetime=None), b"",
                         INTEREST_SIGNERS["digest"])
line("register", wire, prefix="/game/0/anna", cost=10, flags=3, origin=0, expiration=60000)
response = nfd_mgmt.ControlResponse()
response.status_code, response.status_text = 200, "OK"
response.body = nfd_mgmt.ControlParametersValue()
response.body.name, response.body.face_id = "/game/0/anna", 300
value = response.encode()
header = bytes([0x65]) + (bytes([len(value)]) if len(value) < 253 else b"\xfd" + struct.pack("!H", len(value)))
line("response", header + bytes(value), code=200, text="OK", prefix="/game/0/anna", face=300)
