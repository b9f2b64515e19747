import assert from "node:assert/strict";
import { test } from "node:test";
import { containerWith, podWith } from "../../test/support/pods.ts";
import { hugePageMount, isHugePageMedium, isHugePageMount } from "./huge-page-medium.ts";

const small = containerWith("small", { "hugepages-2Mi": "4Mi", memory: "1Gi" });
const large = containerWith("large", { "hugepages-1Gi": "1Gi" });
const target = "/pods/u/volumes/kubernetes.io~empty-dir/v";

test("huge pages are a medium, with and without a size", () => {
  assert.deepEqual(["HugePages", "HugePages-2Mi", "HugePages2Mi", "Memory", ""].map(isHugePageMedium), [
    ...[true, true, false, false, false],
  ]);
});

test("the medium HugePages has the size that the pod requests, whichever of its containers does", () => {
  const mount = { source: "nodev", fileSystem: "hugetlbfs", options: ["pagesize=2Mi"] };
  assert.deepEqual(hugePageMount("HugePages", podWith({ containers: [small, containerWith("b", {})] })), mount);
  assert.deepEqual(hugePageMount("HugePages", podWith({ containers: [], initContainers: [small] })), mount);
  const resources = { requests: { "hugepages-2Mi": "4Mi" } };
  assert.deepEqual(hugePageMount("HugePages", podWith({ containers: [containerWith("b", {})], resources })), mount);
});

test("a medium with a size has this one of several, however it is written", () => {
  const pod = podWith({ containers: [small, large] });
  assert.deepEqual(hugePageMount("HugePages-1Gi", pod).options, ["pagesize=1Gi"]);
  assert.deepEqual(hugePageMount("HugePages-2048Ki", pod).options, ["pagesize=2Mi"]);
});

test("pods without such pages are rejected in upstream's words", () => {
  const rejected = (medium: string, containers: (typeof small)[], message: string): void => {
    assert.throws(() => hugePageMount(medium, podWith({ containers })), { name: "VolumeError", message });
  };
  const none = "hugePages storage requested, but there is no resource request for huge pages";
  rejected("HugePages", [containerWith("c", { memory: "1Gi" })], `medium HugePages: ${none}`);
  rejected("HugePages-1Gi", [small], `medium HugePages-1Gi: ${none}`);
  const several = "medium: HugePages can't be used if container requests multiple huge page sizes";
  rejected("HugePages", [small, large], several);
  const form = "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  rejected("HugePages-x", [small], `quantities must match the regular expression ${form}`);
});

test("a mount of another kind is none, and one of another size is an error in upstream's words", () => {
  const pod = podWith({ containers: [small] });
  const shown = { source: "nodev", target, fileSystem: "hugetlbfs", options: ["rw", "relatime", "pagesize=2M"] };
  assert.equal(isHugePageMount({ ...shown, fileSystem: "tmpfs" }, "HugePages", pod), false);
  assert.equal(isHugePageMount(shown, "HugePages", pod), true);
  assert.equal(isHugePageMount(shown, "HugePages-2Mi", pod), true);
  assert.equal(isHugePageMount({ ...shown, options: ["pagesize=1024M"] }, "HugePages-1Gi", pod), true);
  assert.throws(() => isHugePageMount(shown, "HugePages-1Gi", pod), {
    message: `pod u: mounted dir ${target} pagesize '2Mi' and requested medium size '1Gi' differ`,
  });
  assert.throws(() => isHugePageMount({ ...shown, options: ["rw"] }, "HugePages-2Mi", pod), {
    message: `no pagesize option specified for ${target} mount`,
  });
});
