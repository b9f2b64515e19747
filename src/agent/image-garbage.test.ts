import assert from "node:assert/strict";
import { test } from "node:test";
import { withDefaults } from "../config/defaults.ts";
import { kubeletSettings } from "../config/settings.ts";
import { engineImageGarbage, kubeletImageGarbage } from "./image-garbage.ts";

const { imageGarbage: policy } = kubeletSettings(withDefaults({}));

test("podwright run collects images that it pulled, in its private runtime only; a kubelet collects all", () => {
  assert.deepEqual(engineImageGarbage(policy, true), { ...policy, onlyPulled: true });
  assert.equal(engineImageGarbage(policy, false), undefined);
  assert.deepEqual(kubeletImageGarbage(policy), { ...policy, onlyPulled: false });
});
