import assert from "node:assert/strict";
import { once } from "node:events";
import * as http2 from "node:http2";
import { type AddressInfo, connect } from "node:net";
import { after, before, describe, test } from "node:test";
import fc from "fast-check";
import { encodeField } from "../../http2/hpack.ts";
import { Http2AnswerReader, http2Request } from "./http2-answer.ts";
import { StreamResetError } from "../../http2/errors.ts";
import { HttpSyntaxError } from "../../http2/syntax-error.ts";

const maxBodyBytes = 100;
const settings = frame(4, 0, 0);
const ok = encodeField(":status", "200");
const wholeAnswer = Buffer.concat([settings, frame(1, 0x4, 1, ok), frame(0, 0, 1, Buffer.from("he")), end("llo")]);

function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

function end(text: string): Buffer {
  return frame(0, 0x1, 1, Buffer.from(text));
}

function read(...chunks: readonly Uint8Array[]): Http2AnswerReader {
  const reader = new Http2AnswerReader(maxBodyBytes);
  for (const chunk of chunks) reader.push(Buffer.from(chunk));
  return reader;
}

describe("an HTTP/2 answer", () => {
  test("is the same for any fragmentation", () => {
    for (let size = 1; size <= wholeAnswer.length; size++) {
      const reader = new Http2AnswerReader(maxBodyBytes);
      // The buffer of a chunk is reused for the next.
      const chunk = Buffer.alloc(size);
      for (let at = 0; at < wholeAnswer.length; at += size) {
        assert.ok(!reader.isComplete);
        reader.push(chunk.subarray(0, wholeAnswer.copy(chunk, 0, at, at + size)));
      }
      assert.ok(reader.isComplete);
      assert.equal(reader.body.toString(), "hello");
      assert.deepEqual([...(reader.headers ?? [])], [[":status", "200"]]);
      assert.equal(reader.trailers, undefined);
      reader.end();
    }
  });

  test("may have padding, priority, continuation frames, and interim responses before it", () => {
    const early = frame(1, 0x4, 1, encodeField(":status", "103"));
    const padded = Buffer.concat([Buffer.of(2, 0, 0, 0, 0, 16), ok.subarray(0, 4), Buffer.alloc(2)]);
    const headers = Buffer.concat([frame(1, 0x8 | 0x20, 1, padded), frame(9, 0x4, 1, ok.subarray(4))]);
    const body = frame(0, 0x8, 1, Buffer.concat([Buffer.of(3), Buffer.from("hi"), Buffer.alloc(3)]));
    const trailers = frame(1, 0x5, 1, encodeField("grpc-status", "0"));
    const reader = read(settings, early, headers, frame(8, 0, 1, Buffer.alloc(4)), frame(0xee, 0, 7), body, trailers);
    assert.ok(reader.isComplete);
    assert.equal(reader.headers?.get(":status"), "200");
    assert.equal(reader.trailers?.get("grpc-status"), "0");
    assert.equal(reader.body.toString(), "hi");
  });

  test("acknowledges settings and pings, once each", () => {
    const ping = Buffer.from("12345678");
    const reader = read(settings, frame(4, 0x1, 0), frame(6, 0, 0, ping), frame(6, 0x1, 0, ping));
    assert.deepEqual(reader.takeReplies(), Buffer.concat([frame(4, 0x1, 0), frame(6, 0x1, 0, ping)]));
    assert.equal(reader.takeReplies(), undefined);
  });

  test("may be the last one on the connection", () => {
    const goAway = frame(7, 0, 0, Buffer.of(0, 0, 0, 1, 0, 0, 0, 0));
    const reader = read(settings, goAway, wholeAnswer.subarray(settings.length));
    assert.ok(reader.isComplete);
  });

  test("reports why the server reset it", () => {
    const reset = frame(3, 0, 1, Buffer.of(0, 0, 0, 7));
    assert.throws(() => read(settings, reset), new StreamResetError(7, "the server reset the request: REFUSED_STREAM"));
    const calm = frame(7, 0, 0, Buffer.of(0, 0, 0, 1, 0, 0, 0, 11, 0x62));
    assert.throws(() => read(settings, calm), new StreamResetError(11, "the server sent GOAWAY: ENHANCE_YOUR_CALM"));
    const unseen = frame(7, 0, 0, Buffer.of(0, 0, 0, 0, 0, 0, 0, 0));
    assert.throws(() => read(settings, unseen), new StreamResetError(0, "the server sent GOAWAY: NO_ERROR"));
    const odd = frame(3, 0, 1, Buffer.of(0, 0, 0, 99));
    assert.throws(() => read(settings, odd), new StreamResetError(99, "the server reset the request: error 99"));
  });

  const broken: readonly (readonly [name: string, bytes: Buffer, problem: RegExp])[] = [
    ["HTTP/1", Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"), /is not HTTP\/2/],
    ["no settings", frame(1, 0x5, 1, ok), /is not HTTP\/2/],
    [
      "a frame that is too long",
      Buffer.concat([settings, Buffer.of(0, 0x40, 1, 0, 0, 0, 0, 0, 1)]),
      /longer than 16384/,
    ],
    ["a body before the headers", Buffer.concat([settings, end("x")]), /before the headers/],
    ["a body that is too long", Buffer.concat([settings, frame(1, 0x4, 1, ok), end("x".repeat(101))]), /too long/],
    ["headers that break off", Buffer.concat([settings, frame(1, 0, 1, ok), end("x")]), /breaks off/],
    ["headers without a beginning", Buffer.concat([settings, frame(9, 0x4, 1, ok)]), /no beginning/],
    ["headers without end", Buffer.concat([settings, frame(1, 0, 1), ...endless(9, 5, 16_000)]), /exceed 65536/],
    [
      "headers that stand for megabytes",
      Buffer.concat([
        settings,
        frame(1, 0, 1, Buffer.concat([Buffer.from([0x40, 1, 0x61, 0x7f, 0xa1, 0x1e]), Buffer.alloc(4000, "x")])),
        frame(9, 0x4, 1, Buffer.alloc(1000, 0xbe)),
      ]),
      /exceed 65536/,
    ],
    ["too much padding", Buffer.concat([settings, frame(0, 0x8, 1, Buffer.of(1))]), /padded beyond/],
    ["priority that is cut off", Buffer.concat([settings, frame(1, 0x24, 1, Buffer.of(1))]), /cut off/],
    ["a push", Buffer.concat([settings, frame(5, 0x4, 1, Buffer.alloc(4))]), /pushes/],
    ["a frame of another request", Buffer.concat([settings, frame(0, 0x1, 3)]), /belongs to no request/],
    ["a short reset", Buffer.concat([settings, frame(3, 0, 1, Buffer.of(0))]), /RST_STREAM/],
    ["a short ping", Buffer.concat([settings, frame(6, 0, 0, Buffer.of(0))]), /PING/],
    ["a short goodbye", Buffer.concat([settings, frame(7, 0, 0, Buffer.of(0))]), /GOAWAY/],
    ["frames without end", Buffer.concat(endless(4, 1_001, 0)), /more than 1000 frames/],
  ];
  for (const [name, bytes, problem] of broken) {
    test(`is refused with ${name}`, () => {
      assert.throws(
        () => read(bytes),
        (error) => error instanceof HttpSyntaxError && problem.test(error.message),
      );
    });
  }

  test("that ends early is an error", () => {
    assert.throws(() => new Http2AnswerReader(maxBodyBytes).end(), /before the response/);
    for (let length = 1; length < wholeAnswer.length; length++) {
      assert.throws(() => read(wholeAnswer.subarray(0, length)).end(), /closed early/);
    }
  });

  test("is read or rejected, whatever arrives", () => {
    const frames = fc.tuple(fc.nat(10), fc.nat(255), fc.nat(2), fc.uint8Array({ maxLength: 40 }));
    fc.assert(
      fc.property(fc.array(frames), (given) => {
        try {
          read(settings, ...given.map(([type, flags, stream, payload]) => frame(type, flags, stream, payload)));
        } catch (error) {
          assert.ok(error instanceof HttpSyntaxError || error instanceof StreamResetError, String(error));
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

function endless(type: number, count: number, bytes: number): Buffer[] {
  return Array.from({ length: count }, () => frame(type, 0, type === 4 ? 0 : 1, Buffer.alloc(bytes)));
}

describe("a real server of HTTP/2", () => {
  let answer: (stream: http2.ServerHttp2Stream, body: Buffer) => void;
  const server = http2.createServer();
  server.on("stream", (stream: http2.ServerHttp2Stream) => {
    stream.on("error", () => {});
    const parts: Buffer[] = [];
    stream.on("data", (part: Buffer) => parts.push(part));
    stream.once("end", () => answer(stream, Buffer.concat(parts)));
  });
  before(() => once(server.listen(0, "127.0.0.1"), "listening"));
  after(() => server.close());

  async function ask(body: Buffer): Promise<Http2AnswerReader> {
    const reader = new Http2AnswerReader(100_000);
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
    const fields = { ":method": "POST", ":scheme": "http", ":path": "/", ":authority": "here" };
    const block = Buffer.concat(Object.entries(fields).map(([name, value]) => encodeField(name, value)));
    socket.write(http2Request(block, body));
    for await (const chunk of socket) {
      reader.push(chunk);
      const replies = reader.takeReplies();
      if (reader.isComplete) break;
      if (replies !== undefined) socket.write(replies);
    }
    socket.destroy();
    reader.end();
    return reader;
  }

  test("is decoded with every character that a header may hold, compressed and with repeated fields", async () => {
    const visible = [...codes(0x21, 0x7f), ...codes(0xa1, 0x100)].map((code) => String.fromCharCode(code));
    // Each beside text that compresses well, so that all of it is compressed.
    const values = Object.fromEntries(visible.map((char, index) => [`x-${index}`, `${"0".repeat(30)}${char}0`]));
    answer = (stream) => {
      stream.respond(values, { waitForTrailers: true });
      stream.once("wantTrailers", () => stream.sendTrailers(values));
      stream.end("body");
    };
    const { headers, trailers, body } = await ask(Buffer.alloc(0));
    assert.equal(body.toString(), "body");
    for (const [name, value] of Object.entries(values)) {
      assert.equal(headers?.get(name), value);
      assert.equal(trailers?.get(name), value);
    }
  });

  test("accepts bodies up to the initial window, in frames of the accepted size", async () => {
    answer = (stream, body) => {
      stream.respond({ ":status": 200 });
      stream.end(String(body.length));
    };
    for (const size of [0, 1, 16_384, 16_385, 65_535]) {
      assert.equal((await ask(Buffer.alloc(size))).body.toString(), String(size));
    }
    assert.throws(() => http2Request(Buffer.alloc(0), Buffer.alloc(65_536)), RangeError);
    assert.throws(() => http2Request(Buffer.alloc(16_385), Buffer.alloc(0)), RangeError);
  });

  test("is decoded for any headers and trailers", async () => {
    const text = fc
      .string({ unit: fc.constantFrom(..."a b c X Y Z 0 1 9 ~ { | } é".split(" "), " "), maxLength: 300 })
      .map((value) => `-${value}-`);
    const fields = fc.dictionary(fc.stringMatching(/^x-[a-d]{1,30}$/), text, { maxKeys: 12 });
    await fc.assert(
      fc.asyncProperty(fields, fields, async (given, later) => {
        answer = (stream) => {
          stream.respond(given, { waitForTrailers: true });
          stream.once("wantTrailers", () => stream.sendTrailers({ ...given, ...later, "x-end": "1" }));
          stream.end();
        };
        const { headers, trailers } = await ask(Buffer.alloc(0));
        for (const [name, value] of Object.entries(given)) assert.equal(headers?.get(name), value);
        for (const [name, value] of Object.entries({ ...given, ...later })) assert.equal(trailers?.get(name), value);
      }),
    );
  });
});

function codes(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index);
}
