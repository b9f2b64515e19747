import assert from "node:assert/strict";
import { test } from "node:test";
import { vectorText } from "../../test/support/vectors.ts";
import { decodeConfiguration } from "./decode.ts";
import { withDefaults } from "./defaults.ts";

/**
 * Recorded from Kubernetes 1.36.2's decoder, SetDefaults_KubeletConfiguration and validation, for a
 * KubeletConfiguration with one empty text.
 */
const rows = vectorText("empty-configuration-texts.tsv")
  .trimEnd()
  .split("\n")
  .map((row) => row.split("\t"));

function read(fields: object): ReturnType<typeof withDefaults> {
  const type = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
  const bytes = new TextEncoder().encode(JSON.stringify({ ...type, ...fields }));
  const { configuration, errors } = decodeConfiguration(bytes, "kubelet.json");
  for (const error of errors) throw error;
  return withDefaults(configuration);
}

/** Without empty texts and empty maps. */
function said(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const fields = Object.entries(value)
    .map(([name, field]): [string, unknown] => [name, said(field)])
    .filter(([, field]) => field !== undefined && field !== "" && JSON.stringify(field) !== "{}");
  return Object.fromEntries(fields);
}

test("an empty text means the default, except where it is a valid value or an error", () => {
  const none = said(read({}));
  for (const [place = "", means] of rows) {
    const fields = place.split(".").reduceRight<unknown>((inner, name) => ({ [name]: inner }), "") as object;
    if (means === "not given") assert.deepEqual(said(read(fields)), none, place);
    else if (means === "taken") assert.equal(Reflect.get(read(fields), place), "", place);
    else assert.throws(() => read(fields), /expected a duration/u, place);
  }
  assert.ok(rows.length > 50);
});
