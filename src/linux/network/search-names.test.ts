import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSearchRules, searchNames } from "./search-names.ts";

test("search domains and ndots are read as by Go's resolver", () => {
  const text = [
    "# search commented.example",
    "nameserver 192.0.2.1",
    "domain first.example",
    "search cluster.lan.  example.org ; not.this",
    "options timeout:1 ndots:3 rotate",
  ].join("\n");
  assert.deepEqual(parseSearchRules(text, "n"), { domains: ["cluster.lan", "example.org"], ndots: 3 });
  assert.deepEqual(parseSearchRules("domain a.example b.example\n", "n"), { domains: ["a.example"], ndots: 1 });
  assert.deepEqual(parseSearchRules("options ndots:99\nsearch .\n", "n"), { domains: [], ndots: 15 });
});

test("without a search line the machine's own domain is searched", () => {
  assert.deepEqual(parseSearchRules("", "worker1.cluster.lan"), { domains: ["cluster.lan"], ndots: 1 });
  assert.deepEqual(parseSearchRules("", "worker1"), { domains: [], ndots: 1 });
});

test("names are searched in Go's order", () => {
  const rules = { domains: ["a.lan", "b.lan"], ndots: 1 };
  assert.deepEqual(searchNames("worker1", rules), ["worker1.a.lan", "worker1.b.lan", "worker1"]);
  assert.deepEqual(searchNames("worker1.site", rules), ["worker1.site", "worker1.site.a.lan", "worker1.site.b.lan"]);
  assert.deepEqual(searchNames("a.b", { ...rules, ndots: 2 }), ["a.b.a.lan", "a.b.b.lan", "a.b"]);
  assert.deepEqual(searchNames("worker1.", rules), ["worker1"]);
  assert.deepEqual(searchNames("w".repeat(250), rules), ["w".repeat(250)]);
});
