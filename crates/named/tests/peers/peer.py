"""A producer or consumer on python-ndn, for tests of the forwarder.

    peer.py produce tcp://127.0.0.1:6363 /prefix FRESHNESS_MS
    peer.py consume tcp://127.0.0.1:6363

Speaks JSON, one object a line. The producer says `{"registered": true}`, then every Interest that comes;
a line `{"name": ..., "content": ...}` on its standard input is an answer. The consumer takes one Interest
per line, `{"name": ..., "must_be_fresh": ..., "can_be_prefix": ..., "lifetime": ...}`, and says what came.
"""

import asyncio
import json
import logging
import os
import sys
import tempfile

# No keys of whoever runs the tests.
os.environ["HOME"] = tempfile.mkdtemp()

from ndn import app as ndn_app
from ndn import types
from ndn.client_conf import default_face
from ndn.encoding import Name
from ndn.security import KeychainDigest

logging.basicConfig(level=logging.WARNING, stream=sys.stderr)


def say(**fields):
    print(json.dumps(fields), flush=True)


async def lines():
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        yield json.loads(line)


async def produce(app, prefix, freshness):
    def on_interest(name, param, _parameters):
        say(interest=Name.to_canonical_uri(name), must_be_fresh=param.must_be_fresh,
            can_be_prefix=param.can_be_prefix, lifetime=param.lifetime)

    say(registered=await app.register(prefix, on_interest))
    async for answer in lines():
        app.put_data(answer["name"], answer["content"].encode(), freshness_period=freshness)
    app.shutdown()


async def consume(app):
    say(connected=True)
    async for wish in lines():
        name = wish.pop("name")
        try:
            found, meta, content = await app.express_interest(name, **wish)
            say(data=Name.to_canonical_uri(found), content=bytes(content).decode(),
                freshness=meta.freshness_period)
        except types.InterestNack as nack:
            say(nack=nack.reason)
        except types.InterestTimeout:
            say(timeout=True)
    app.shutdown()


def main():
    verb, uri, *rest = sys.argv[1:]
    app = ndn_app.NDNApp(default_face(uri), KeychainDigest())
    if verb == "produce":
        app.run_forever(produce(app, rest[0], int(rest[1])))
    else:
        app.run_forever(consume(app))


main()
