import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { bytesOf, hostAndPort, isHost, parseGoUrl, requestTarget, resolveGoUrl } from "./go-url.ts";

/** Where Go's net/url (1.26) is led by a Location, seen from a base. */
interface RecordedLocation {
  readonly base: string;
  readonly location: string;
  readonly scheme: string;
  readonly host: string;
  readonly target: string;
  readonly user?: string;
  readonly refused?: true;
}

const file = new URL("../../test/fixtures/http-get/locations.jsonl", import.meta.url);
const recorded = readFileSync(file, "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as RecordedLocation);

test("a redirect leads where Go's net/url leads it", () => {
  for (const { base, location, refused, ...expected } of recorded) {
    const from = parseGoUrl(base);
    const reference = parseGoUrl(bytesOf(location));
    assert.ok(from);
    if (refused === true) {
      assert.equal(reference, undefined, location);
      continue;
    }
    assert.ok(reference, location);
    const url = resolveGoUrl(from, reference);
    const text = (bytes: string): string => Buffer.from(bytes, "latin1").toString();
    const found = {
      scheme: url.scheme,
      host: text(hostAndPort(url).host),
      target: url.opaque === "" ? text(requestTarget(url)) : "",
      ...(url.user !== undefined && { user: url.user }),
    };
    assert.deepEqual(found, expected, `${base} ${location}`);
  }
  assert.equal(recorded.length, 538);
});

test("a port is the scheme's unless it is given", () => {
  const port = (url: string): number | undefined => {
    const parsed = parseGoUrl(url);
    return parsed && hostAndPort(parsed).port;
  };
  assert.equal(port("http://h/"), 80);
  assert.equal(port("https://h/"), 443);
  assert.equal(port("https://h:/"), 443);
  assert.equal(port("http://[::1]:8080/"), 8080);
  assert.equal(port("http://h:99999/"), 99_999);
});

test("a host is a name or an address without brackets, and no more", () => {
  for (const host of ["h", "a_b", "10.0.0.2", "::1", "fe80::1%eth0"]) assert.ok(isHost(host), host);
  for (const host of ["", " ", "h/x", "u@h", "h:80", "[::1]", "::g", "http://h"]) assert.ok(!isHost(host), host);
});
