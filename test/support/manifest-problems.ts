import assert from "node:assert/strict";
import { decodeManifests } from "../../src/sources/decode.ts";
import { prepareManifests } from "../../src/sources/prepare.ts";

/** What is wrong with a pod of this spec and metadata, both YAML, without file and position. */
export function problems(spec: string, metadata = "{name: a}"): string[] {
  const text = `apiVersion: v1\nkind: Pod\nmetadata: ${metadata}\nspec: ${spec}\n`;
  const { objects, errors } = decodeManifests(new TextEncoder().encode(text), "f");
  assert.deepEqual(errors, []);
  return prepareManifests(objects).errors.map((error) => error.message.replace(/^f:\d+:\d+: /u, ""));
}
