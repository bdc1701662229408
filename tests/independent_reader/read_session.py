#!/usr/bin/env python3
"""Parses a captured connection, written from WIRE.md alone: an independent check of the format.

    read_session.py CAPTURE...     one line of JSON for each datagram and each message
    read_session.py --self-test

A capture holds all datagrams that arrived at both ends, in order, and their secrets; a line is a name and its value:

    key       the key that backend and server share         } all in hexadecimal
    random    the random bytes from which both ends drew     }
    token     the client's token                             }
    address   of the client
    channels  kinds of channel 0, 1, ...: ordered, unordered, unreliable, sequenced
    up, down  a datagram to the server, to the client        } in hexadecimal
    frames_up, frames_down  frames without a packet          }
    lobby_up, lobby_down    a lobby message                  }

If WIRE.md does not specify something that this needs, that is a bug of WIRE.md.
"""

import hashlib
import hmac
import ipaddress
import json
import sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

sys.dont_write_bytecode = True
from frames import Malformed, Reader, check, self_test
from frames import complete_recent, read_about_blob, read_frames, read_lobby, read_request

# Cryptography


def mac(key, data):
    return hmac.digest(key, data, "sha256")[:16]


def expand(key, info):
    return hmac.digest(key, info + b"\1", "sha256")


def hchacha20(key, nonce):
    words = lambda data: [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]
    s = words(b"expand 32-byte k" + key + nonce)

    def step(a, b, d, turn):
        s[a] = (s[a] + s[b]) & 0xFFFFFFFF
        x = s[d] ^ s[a]
        s[d] = (x << turn | x >> 32 - turn) & 0xFFFFFFFF

    for i in range(80):
        a = i % 4
        b, c, d = [(a + i // 4 % 2 * k) % 4 + 4 * k for k in (1, 2, 3)]
        step(a, b, d, 16), step(c, d, b, 12), step(a, b, d, 8), step(c, d, b, 7)
    return b"".join(word.to_bytes(4, "little") for word in s[:4] + s[12:])


def open_sealed(key, nonce, data, associated):
    try:
        return ChaCha20Poly1305(key).decrypt(nonce, data, associated)
    except InvalidTag:
        raise Malformed("damaged or forged") from None


# Handshake


def read_servers(reader):
    count = reader.fixed(1)
    check(1 <= count <= 16, "number of servers")
    servers = []
    for _ in range(count):
        kind, raw, port = reader.fixed(1), reader.take(16), reader.fixed(2)
        check(kind in (4, 6), "kind of address")
        check(kind == 6 or not any(raw[4:]), "not an IPv4 address")
        host = ipaddress.ip_address(raw[:4] if kind == 4 else raw)
        servers.append(f"{host}:{port}" if kind == 4 else f"[{host}]:{port}")
    return servers


def address_bytes(text):
    host, port = text.rsplit(":", 1)
    host = ipaddress.ip_address(host.strip("[]"))
    return bytes([host.version]) + host.packed.ljust(16, b"\0") + int(port).to_bytes(2, "little")


class Token:
    def __init__(self, data):
        reader = Reader(data)
        self.head = reader.take(32)
        check(self.head[:8] == b"prscnt\0\1", "not a token of version 1")
        self.nonce, self.sealed, self.secret = reader.take(24), reader.take(640), reader.take(32)
        self.servers = read_servers(reader)
        reader.end()

    def open(self, key):
        nonce = bytes(4) + self.nonce[16:]
        plain = open_sealed(hchacha20(key, self.nonce[:16]), nonce, self.sealed, self.head)
        reader = Reader(plain)
        client, secret, servers = reader.fixed(8), reader.take(32), read_servers(reader)
        check(secret == self.secret and servers == self.servers, "two tokens in one")
        length = reader.fixed(2)
        check(length <= 256, "too much data")
        data = reader.take(length)
        check(not any(reader.rest()), "not zeros")
        expiry = int.from_bytes(self.head[24:], "little")
        protocol, data = self.head[8:24].hex(), data.hex()
        return dict(client=client, protocol=protocol, expiry=expiry, servers=servers, data=data)


DENIALS = "version protocol unreadable expired server used full crowded refused banned closing".split()


class Session:
    """Both ends of one connection, reconstructed from its datagrams."""

    def __init__(self, report):
        self.report, self.count = report, 0
        self.opening = self.accepted = self.own_key = None
        self.random, self.channels = b"", []
        # Keyed by the receiving end.
        self.ends = {}

    def line(self, name, value):
        to = "server" if name.endswith("up") else "client"
        if name in ("address", "channels"):
            setattr(self, name, value if name == "address" else value.split())
            return
        value = bytes.fromhex(value)
        if name in ("key", "random"):
            setattr(self, name, value)
        elif name == "token":
            self.token = Token(value)
            self.report(token=self.token.open(self.key))
        elif name in ("up", "down"):
            try:
                told = self.datagram(to, value)
            except Malformed as why:
                told = dict(refused=str(why))
            self.report(datagram=self.count, to=to, **told)
            self.count += 1
            if to in self.ends:
                self.ends[to].tell(self.report)
        elif name.startswith("lobby"):
            self.report(to=to, lobby=read_lobby(to, value))
        else:
            self.report(to=to, frames=[shown(frame) for frame in read_frames(to, value)])

    def datagram(self, to, data):
        first = data[0] if data else 0
        if first >= 128:
            check(to in self.ends, "no keys yet")
            return self.ends[to].packet(data)
        kinds = {"server": {1: (self.request, 1200)}}
        kinds["client"] = {2: (self.challenge, 33), 3: (self.accept, 81), 4: (self.denied, 28)}
        kinds["client"][5] = (self.reset, 17)
        read, length = kinds[to].get(first, (None, 0))
        check(read and len(data) == length, "kind or length")
        return read(data)

    def request(self, data):
        token = self.token
        check(data[1] == 6, "version")
        sent = token.head[8:] + token.nonce + token.sealed
        check(data[10:698] == sent, "not from the token")
        check(data[754:770] == mac(expand(token.secret, b"request"), data[:754]), "MAC")
        check(not any(data[770:]), "not zeros")
        check(self.opening in (None, data[:730]), "another opening")
        self.opening = data[:730]
        cookie = data[730:754]
        return dict(kind="request", cookie="none" if not any(cookie) else self.good(cookie))

    def good(self, cookie):
        """Whether the cookie is the server's; its key is searched in the random bytes."""
        said = address_bytes(self.address) + cookie[:8] + self.opening
        fits = lambda key: mac(key, said) == cookie[8:]
        self.own_key = self.own_key or self.find(fits)
        return bool(self.own_key) and fits(self.own_key)

    def find(self, fits):
        places = (self.random[at : at + 32] for at in range(len(self.random) - 31))
        return next((key for key in places if fits(key)), None)

    def secret_of(self, public):
        load = X25519PrivateKey.from_private_bytes
        raw = lambda key: load(key).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        key = self.find(lambda key: raw(key) == public)
        return key and load(key)

    def echo(self, data):
        check(self.opening and data[1:9] == self.opening[2:10], "echo")

    def challenge(self, data):
        self.echo(data)
        return dict(kind="challenge", cookie=self.good(data[9:]))

    def accept(self, data):
        self.echo(data)
        if self.accepted:
            check(data == self.accepted, "another accept")
            return dict(kind="accept", name=data[9:17].hex())
        client, server = self.secret_of(self.opening[698:730]), self.secret_of(data[17:49])
        check(client and server, "unknown public key")
        shared = client.exchange(server.public_key())
        root = hmac.digest(b"prescient transport 1", self.token.secret + shared, "sha256")
        said = hashlib.sha256(self.opening + data[:49]).digest()
        accept_key = expand(root, b"accept" + said)
        told = open_sealed(accept_key, bytes(12), data[49:], data[:49])
        self.accepted, name = data, data[9:17]
        check(told == self.reset_token(name), "another reset token")
        self.ends["server"] = End("server", name, expand(root, b"up" + said), self)
        self.ends["client"] = End("client", b"", expand(root, b"down" + said), self)
        return dict(kind="accept", name=name.hex())

    def reset_token(self, name):
        # The token identifies one server by all of its addresses.
        servers = sorted(map(address_bytes, self.token.servers))
        return mac(expand(self.key, b"reset" + b"".join(servers)), name)

    def reset(self, data):
        check(self.accepted, "no connection")
        name = self.accepted[9:17]
        check(data[1:] == self.reset_token(name), "another reset token")
        return dict(kind="reset", name=name.hex())

    def denied(self, data):
        self.echo(data)
        why, detail = data[9], int.from_bytes(data[10:12], "little")
        check(1 <= why <= 11, "why")
        key = bytes(32) if why <= 3 else expand(self.token.secret, b"request")
        check(data[12:] == mac(key, data[:12] + self.opening[:10]), "MAC")
        check(not detail or why in (1, 9), "not zero")
        return dict(kind="denied", why=DENIALS[why - 1], detail=detail)


# Packets

KINDS = {
    "server": ["frames", "keep-alive", "path response", "close"],
    "client": ["frames", "keep-alive", "path challenge", "close"],
}
REASONS = "finished,shutting down,kicked,timed out,keys used up,broken rules,nothing reliable acknowledged"


def close_reason(number):
    if 1 <= number <= 7:
        return REASONS.split(",")[number - 1]
    return number - 65536 if 65536 <= number < 131072 else "finished"


class End:
    """The receiving side of one end."""

    def __init__(self, to, name, secret, session):
        self.to, self.name, self.session = to, name, session
        self.secrets, self.epoch, self.since = [secret], 0, 0
        self.next, self.seen = 0, set()
        # What the other end has acknowledged, and the newest packet that did.
        self.acknowledged, self.reported = 0, -1
        self.channels = [Channel(kind) for kind in session.channels]
        self.channels += [Channel("none")] * (13 - len(self.channels))
        self.channels += [Channel("ordered"), Channel("unordered"), Channel("ordered")]
        self.blobs, self.told = {}, []
        self.newest_input, self.presses = -1, {}

    def key(self, epoch):
        while len(self.secrets) <= epoch:
            self.secrets.append(expand(self.secrets[-1], b"next"))
        return expand(self.secrets[epoch], b"packets")

    def sequence(self, low, span):
        """The sequence number that is `low` modulo `span`: nearest to the next, or not far beyond it."""
        near = self.next - self.next % span + low
        places = [place for place in (near - span, near, near + span) if place >= 0]
        if span == 32:
            return max((place for place in places if place <= self.next + 8), default=min(places))
        return min(places, key=lambda place: abs(place - self.next))

    def packet(self, data):
        first, named = data[0], 1 + len(self.name)
        if first & 64:
            number, low, span = 0, first & 31, 32
            kind, phase, peer_epoch = "frames", first >> 5 & 1, first >> 5 & 1
        else:
            number = 1 + (first >> 2 & 3)
            low, span = int.from_bytes(data[named : named + number], "little"), 1 << 8 * number
            kind, phase, peer_epoch = KINDS[self.to][first >> 4 & 3], first & 1, first >> 1 & 1
        head, epoch = named + number, self.epoch
        check(len(data) >= head + 16, "too short")
        check(data[1:named] == self.name, "another connection")
        sequence = self.sequence(low, span)
        if phase != epoch % 2:
            epoch += -1 if sequence < self.since else 1
        check(epoch >= 0, "no key of this epoch")
        nonce = bytes(4) + sequence.to_bytes(8, "little")
        body = open_sealed(self.key(epoch), nonce, data[head:], data[:head])
        check(sequence not in self.seen, "received before")
        check(self.next - sequence <= 1984, "older than the replay window")
        self.seen.add(sequence)
        if epoch > self.epoch:
            self.epoch, self.since = epoch, sequence
        elif epoch == self.epoch:
            self.since = min(self.since, sequence)
        self.next = max(self.next, sequence + 1)
        told = dict(kind=kind, sequence=sequence, epoch=epoch, peer_epoch=peer_epoch)
        if kind == "close" and len(body) == 4:
            told["reason"] = close_reason(int.from_bytes(body, "little"))
        if kind == "frames":
            try:
                read = [self.complete(frame, sequence) for frame in read_frames(self.to, body)]
                told["frames"] = [shown(frame) for frame in read]
                for place, frame in enumerate(read):
                    self.apply(frame, (sequence, place))
            except Malformed as why:
                told["broken"] = str(why)
        return told

    def complete(self, frame, sequence):
        if frame["frame"] != "recent" or sequence < self.reported:
            return frame
        return complete_recent(frame, self.acknowledged)

    def other(self):
        return self.session.ends["client" if self.to == "server" else "server"]

    def apply(self, frame, place):
        if frame["frame"] == "received":
            self.acknowledged = max(self.acknowledged, frame["newest"])
            self.reported = max(self.reported, place[0])
            # Both ends are known, so this also checks that acknowledged packets did arrive.
            for low, high in frame["packets"]:
                named = range(low, high + 1)
                check(self.other().seen.issuperset(named), "acknowledges what did not arrive")
        elif frame["frame"] == "chunk":
            check(frame["blob"] in self.blobs, "a blob that was not offered")
            blob = self.blobs[frame["blob"]]
            whole = blob and blob.add(frame["offset"], frame["bytes"])
            if whole is not None:
                self.told.append(dict(blob=frame["blob"], bytes=whole.hex()))
        elif frame["frame"] == "input":
            self.told += filter(None, map(self.hand_out, frame["inputs"]))
        elif frame["frame"] == "message":
            number = frame["channel"]
            for message in self.channels[number].receive(frame, place):
                if number == 13:
                    self.told.append(dict(lobby=read_lobby(self.to, message)))
                elif number == 14:
                    self.told.append(read_request(message))
                elif number == 15:
                    told = read_about_blob(message)
                    if told["about"] == "offer":
                        self.blobs[told["blob"]] = Pieces(told["size"])
                    elif told["about"] == "withdrawn":
                        self.blobs[told["blob"]] = None
                    elif told["about"] == "refused":
                        self.other().blobs[told["blob"]] = None
                    self.told.append(told)
                else:
                    self.told.append(dict(channel=number, message=message.hex()))

    def hand_out(self, one):
        """The input if it is later than all before, without presses that were delivered already."""
        tick, since, pressed = one["tick"], one["since"], one["pressed"]
        if tick <= self.newest_input:
            return None
        if since <= self.newest_input:
            pressed = [key for key in pressed if self.presses.get(key, -1) < since]
        self.newest_input = tick
        self.presses.update((key, tick) for key in pressed)
        rest = {name: one[name] for name in ("pointer", "fields")}
        return dict(input=tick, keys_down=one["keys_down"], pressed=pressed, **rest)

    def tell(self, report):
        for told in self.told:
            report(to=self.to, **told)
        self.told = []


class Pieces:
    def __init__(self, total):
        self.bytes, self.have, self.done = bytearray(total), bytearray(total), False

    def add(self, offset, piece):
        """The whole content, once, when all pieces are there."""
        end = offset + len(piece)
        check(end <= len(self.bytes), "beyond the end")
        self.bytes[offset:end], self.have[offset:end] = piece, b"\1" * len(piece)
        if self.done or not all(self.have):
            return None
        self.done = True
        return bytes(self.bytes)


class Channel:
    """Reassembles and orders the messages of one channel to one end."""

    def __init__(self, kind):
        self.kind, self.parts, self.next, self.ready = kind, {}, 0, {}
        self.starts, self.newest = {}, (-1, 0)

    def receive(self, frame, place):
        check(self.kind != "none", "no such channel")
        reliable = self.kind in ("ordered", "unordered")
        check(frame["reliable"] == reliable, "reliable or not")
        number, whole = frame.get("number"), frame["bytes"]
        if number is not None:
            if frame.get("offset", 0) == 0:
                self.starts.setdefault(number, place)
            total = frame.get("total", len(whole))
            pieces = self.parts.setdefault(number, Pieces(total))
            if pieces.done:
                return
            check(len(pieces.bytes) == total, "another length")
            whole = pieces.add(frame.get("offset", 0), whole)
        if whole is None:
            return
        if self.kind == "ordered":
            self.ready[number] = whole
            while self.next in self.ready:
                yield self.ready.pop(self.next)
                self.next += 1
        elif self.kind == "sequenced":
            start = self.starts.get(number, place)
            if start > self.newest:
                self.newest = start
                yield whole
        else:
            yield whole


def shown(frame):
    """A frame in which the bytes of messages and blobs are replaced by their length."""
    return {key: len(value) if key == "bytes" else value for key, value in frame.items()}


def report(**told):
    print(json.dumps(told))


def main(paths):
    for path in paths:
        session = Session(report)
        with open(path) as lines:
            for line in lines:
                session.line(*line.rstrip("\n").split(" ", 1))


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    else:
        main(sys.argv[1:])
