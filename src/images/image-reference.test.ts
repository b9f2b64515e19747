import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { ImageReferenceError, parseImageReference, withDefaultTag } from "./image-reference.ts";

const sha256 = `sha256:${"0123456789abcdef".repeat(4)}`;

test("names are completed as Docker completes them", () => {
  const cases: Array<readonly [string, string, string, string, string]> = [
    ["busybox", "docker.io", "library/busybox", "latest", ""],
    ["busybox:1.36", "docker.io", "library/busybox", "1.36", ""],
    ["docker.io/busybox", "docker.io", "library/busybox", "latest", ""],
    ["index.docker.io/busybox", "docker.io", "library/busybox", "latest", ""],
    ["user/app", "docker.io", "user/app", "latest", ""],
    ["localhost/app", "localhost", "app", "latest", ""],
    ["127.0.0.1:5000/app:v1", "127.0.0.1:5000", "app", "v1", ""],
    ["[::1]:5000/a/b__c-d.e", "[::1]:5000", "a/b__c-d.e", "latest", ""],
    ["Host/app", "Host", "app", "latest", ""],
    [`registry.k8s.io/pause@${sha256}`, "registry.k8s.io", "pause", "", sha256],
    [`registry.k8s.io/pause:3.10@${sha256}`, "registry.k8s.io", "pause", "3.10", sha256],
  ];
  for (const [image, domain, path, tag, digest] of cases) {
    assert.deepEqual(parseImageReference(image), { domain, path, tag, digest }, image);
  }
});

test("the runtime gets the name as written, with a tag", () => {
  assert.equal(withDefaultTag("busybox"), "busybox:latest");
  assert.equal(withDefaultTag("busybox:latest"), "busybox:latest");
  assert.equal(withDefaultTag("127.0.0.1:5000/app"), "127.0.0.1:5000/app:latest");
  assert.equal(withDefaultTag(`busybox@${sha256}`), `busybox@${sha256}`);
  assert.equal(withDefaultTag(`busybox:1@${sha256}`), `busybox:1@${sha256}`);
});

test("an invalid image name is rejected in upstream's words", () => {
  const cases: Array<readonly [string, string]> = [
    ["", "invalid reference format"],
    ["BusyBox", "invalid reference format: repository name (library/BusyBox) must be lowercase"],
    ["a//b", "invalid reference format"],
    ["busybox:", "invalid reference format"],
    ["busybox latest", "invalid reference format"],
    ["https://example.com/app", "invalid reference format"],
    ["f".repeat(64), `invalid repository name (${"f".repeat(64)}), cannot specify 64-byte hexadecimal strings`],
    [`x/${"a".repeat(256)}`, "repository name must not be more than 255 characters"],
    [`app@md5:${"a".repeat(32)}`, "unsupported digest algorithm"],
    [`app@sha256:${"a".repeat(32)}`, "invalid checksum digest length"],
    [`app@sha256:${"A".repeat(64)}`, "invalid checksum digest format"],
    [`app:${"t".repeat(129)}`, "invalid reference format"],
  ];
  for (const [image, problem] of cases) {
    assert.throws(() => parseImageReference(image), {
      message: `couldn't parse image name ${JSON.stringify(image)}: ${problem}`,
    });
  }
});

test("an endless name is rejected at once", () => {
  assert.throws(() => parseImageReference(`${"a".repeat(1_000_000)}.b/!`), ImageReferenceError);
});

test("any text is parsed or rejected in bounded time, and a tagged name stays valid", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom(..."a,Z,0,9,.,_,-,/,:,@,[,],__,sha256:".split(",")), maxLength: 400 }),
      (image) => {
        try {
          const tagged = withDefaultTag(image);
          assert.equal(withDefaultTag(tagged), tagged);
        } catch (error) {
          assert.ok(error instanceof ImageReferenceError, String(error));
        }
      },
    ),
  );
});
