import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../../test/support/pods.ts";
import { imageVolumesOf, withImages } from "./volume-images.ts";

const volumes = [
  { name: "models", image: { reference: "models:1", pullPolicy: "Always" } },
  { name: "unused", image: { reference: "unused:1" } },
  { name: "data", emptyDir: {} },
  { name: "tools", image: { reference: "tools:1", pullPolicy: "Never" } },
];

test("a container needs the images of the volumes that it mounts, each once", () => {
  const mount = (name: string, mountPath: string) => ({ name, mountPath });
  const volumeMounts = [mount("tools", "/a"), mount("data", "/b"), mount("models", "/c"), mount("tools", "/d")];
  assert.deepEqual(imageVolumesOf(podWith({ volumes }), { name: "c", volumeMounts }), [
    { name: "tools", reference: "tools:1", pullPolicy: "Never" },
    { name: "models", reference: "models:1", pullPolicy: "Always" },
  ]);
  assert.deepEqual(imageVolumesOf(podWith({ volumes }), { name: "c" }), []);
});

test("images are added to their volumes, and others stay as they are", () => {
  const volume = { hostPath: "", readOnly: true, own: false };
  const data = { hostPath: "/data", readOnly: false, own: true };
  const image = { imageRef: "sha256:1", reference: "models:1" };
  const mounted = new Map([
    ["models", volume],
    ["data", data],
  ]);
  assert.deepEqual(
    [...withImages(mounted, new Map([["models", image]]))],
    [
      ["models", { ...volume, image }],
      ["data", data],
    ],
  );
});
