import assert from "node:assert/strict";
import { decodeManifests } from "../../src/sources/decode.ts";
import { prepareManifests } from "../../src/sources/prepare.ts";

/** What is wrong with a pod of this spec and metadata, both YAML, without file and position. */
export function problems(spec: string, metadata = "{name: a}"): string[] {
  return manifestProblems(`apiVersion: v1\nkind: Pod\nmetadata: ${metadata}\nspec: ${spec}\n`);
}

/** The same of a whole manifest. */
export function manifestProblems(text: string): string[] {
  const { objects, errors } = decodeManifests(new TextEncoder().encode(text), "f");
  assert.deepEqual(errors, []);
  return prepareManifests(objects).errors.map((error) => error.message.replace(/^f:\d+:\d+: /u, ""));
}
