import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { HttpResponseReader } from "./http-response.ts";

/** The result of reading a connection that ends after these pieces. */
function read(...pieces: readonly string[]): unknown {
  const reader = new HttpResponseReader();
  try {
    for (const piece of pieces) reader.push(Buffer.from(piece, "latin1"));
    const early = reader.isComplete;
    reader.end();
    return [reader.head?.status, reader.bodyBytes, early ? "by its own account" : "with the connection"];
  } catch (error) {
    return (error as Error).message;
  }
}

const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

describe("an HTTP/1 response", () => {
  const rows: readonly (readonly [what: string, text: string, expected: unknown])[] = [
    ["with a length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", [200, 2, "by its own account"]],
    [
      "with lines that end in line feeds alone",
      "HTTP/1.0 503 No\nA: b\ncontent-length:2\n\nno",
      [503, 2, "by its own account"],
    ],
    ["without a reason", "HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n", [404, 0, "by its own account"]],
    ["without a length", "HTTP/1.0 200 OK\r\n\r\nall of it", [200, 9, "with the connection"]],
    ["that can have no body", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", [204, 0, "by its own account"]],
    [
      "after interim ones",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
      [200, 0, "with the connection"],
    ],
    ["that switches protocols", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nanything", [101, 0, "by its own account"]],
    ["in chunks", `${chunked}5;a=b\r\nhello\r\n1 \r\n!\r\n0\r\nTrailer: x\r\n\r\n`, [200, 6, "by its own account"]],
    [
      "of one length said twice",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1, 1\r\n\r\nx",
      [200, 1, "by its own account"],
    ],
    [
      "whose chunks go before its length",
      "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
      [200, 0, "by its own account"],
    ],
    [
      "of two lengths",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
      "the response has an invalid content length",
    ],
    [
      "of one length said ten thousand times",
      `HTTP/1.1 200 OK\r\n${"Content-Length: 1\r\n".repeat(10_000)}\r\nx`,
      [200, 1, "by its own account"],
    ],
    [
      "of a length with endless space",
      `HTTP/1.1 200 OK\r\nContent-Length: 1${" ".repeat(250_000)}x\r\n\r\nx`,
      "the response has an invalid content length",
    ],
    [
      "of a negative length",
      "HTTP/1.1 200 OK\r\nContent-Length: -38\r\n\r\nxx",
      "the response has an invalid content length",
    ],
    [
      "of another coding",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
      "the response has an unknown transfer encoding",
    ],
    ["that breaks off", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "the connection closed early"],
    ["that breaks off in a chunk", `${chunked}5\r\nhe`, "the connection closed early"],
    ["that breaks off in its headers", "HTTP/1.1 200 OK\r\nContent-", "the connection closed before the response"],
    ["that never comes", "", "the connection closed before the response"],
    ["of a chunk without length", `${chunked}xyz\r\n`, "a chunk has no length"],
    ["of a chunk of too many digits", `${chunked}fffffffffffffffff\r\n`, "a chunk has no length"],
    ["of a chunk that is longer", `${chunked}1\r\nabc\r\n`, "a chunk is longer than its declared size"],
    ["of another protocol", "SSH-2.0-x\r\n\r\n", "the response is not HTTP"],
    ["of another version", "HTTP/2 200\r\n\r\n", "the response is not HTTP/1"],
    ["of a strange status", "HTTP/1.1 2000 OK\r\n\r\n", "the response is not HTTP/1"],
    ["of endless headers", `HTTP/1.1 200 OK\r\n${"A: b\r\n".repeat(50_000)}`, "its headers exceed 262144 bytes"],
    ["of an endless chunk extension", `${chunked}1;${"a".repeat(5_000)}`, "a chunk's line is too long"],
  ];
  for (const [what, text, expected] of rows) {
    test(`${what}: ${JSON.stringify(expected)}`, () => assert.deepEqual(read(text), expected));
  }

  test("is the same for any fragmentation", () => {
    const sample = fc.constantFrom(...rows.map(([, text]) => text).filter((text) => text.length < 1_000));
    const cuts = fc.array(fc.nat({ max: 200 }), { maxLength: 8 });
    fc.assert(
      fc.property(sample, cuts, (text, at) => {
        const edges = [0, ...at.map((cut) => Math.min(cut, text.length)).toSorted((a, b) => a - b), text.length];
        const pieces = edges.slice(1).map((edge, index) => text.slice(edges[index], edge));
        assert.deepEqual(read(...pieces), read(text));
      }),
      { numRuns: 500 },
    );
  });

  test("reports its redirect target, the first of several", () => {
    const reader = new HttpResponseReader();
    reader.push(Buffer.from("HTTP/1.1 302 Found\r\nLOCATION:  /b?c \r\nLocation: /d\r\n\r\n"));
    assert.deepEqual(reader.head, { status: 302, location: "/b?c" });
  });

  test("reports the first of 23,000 redirect targets", () => {
    const reader = new HttpResponseReader();
    reader.push(Buffer.from(`HTTP/1.1 302\n${"location:a\n".repeat(23_000)}\n`));
    assert.deepEqual(reader.head, { status: 302, location: "a" });
  });

  test("never hangs or throws anything else, whatever a pod sends", () => {
    const words = [
      "HTTP/1.1 200 OK",
      "\r\n",
      "\n",
      "Content-Length: 3",
      "Transfer-Encoding: chunked",
      "3",
      "abc",
      "0",
      " ",
      ";",
      ":",
    ];
    const soup = fc.array(fc.oneof(fc.constantFrom(...words), fc.string({ maxLength: 4 })), { maxLength: 30 });
    fc.assert(
      fc.property(soup, (parts) => {
        const text = parts.join("");
        const whole = read(`HTTP/1.1 200 OK\r\n${text}`);
        assert.ok(Array.isArray(whole) || typeof whole === "string");
      }),
      { numRuns: 500 },
    );
  });
});
