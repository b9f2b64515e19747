import assert from "node:assert/strict";
import { test } from "node:test";
import { attributesOf } from "./attributes.ts";

test("each path has its subresource, the finer one first", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["/pods", "pods proxy"],
    ["/pods/", "pods proxy"],
    ["/runningpods/", "pods proxy"],
    ["/healthz", "healthz proxy"],
    ["/healthz/syncloop", "healthz proxy"],
    ["/configz", "configz proxy"],
    ["/flagz", "configz"],
    ["/statusz", "statusz"],
    ["/stats/summary", "stats"],
    ["/metrics", "metrics"],
    ["/metrics/cadvisor", "metrics"],
    ["/logs/", "log"],
    ["/checkpoint/a/b/c", "checkpoint"],
    ["/exec/a/b/c", "proxy"],
    ["/containerLogs/a/b/c", "proxy"],
    ["/run/a/b/c", "proxy"],
    ["/podsx", "proxy"],
    ["/", "proxy"],
    ["//pods", "proxy"],
  ];
  for (const [path, subresources] of cases) {
    assert.equal(attributesOf("GET", path).subresources.join(" "), subresources, path);
  }
});

test("methods map to verbs; one without a verb is denied", () => {
  const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
  assert.deepEqual(
    methods.map((method) => attributesOf(method, "/pods").verb),
    ["get", "create", "update", "patch", "delete", "", ""],
  );
});
