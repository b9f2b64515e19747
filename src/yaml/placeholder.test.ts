import assert from "node:assert/strict";
import { test } from "node:test";
import { problems } from "../../test/support/manifest-problems.ts";
import { decodeManifests } from "../sources/decode.ts";
import { placeholderHint } from "./placeholder.ts";

const errors = (text: string): string[] =>
  decodeManifests(new TextEncoder().encode(text), "f").errors.map(({ message }) => message);
const pod = "apiVersion: v1\nkind: Pod\nmetadata:\n";

test("a template is reported as one, and not as broken YAML", () => {
  const helm = "is a Helm template: render it first (helm template)";
  assert.deepEqual(errors(`${pod}  name: {{ .Release.Name }}\nspec: {}\n`), [`f:4:10: metadata.name: ${helm}`]);
  assert.deepEqual(errors(`${pod}  name: {{ .Release.Name }}-web\nspec: {}\n`), [`f:4:28: ${helm}`]);
  assert.match(errors(`${pod}  name: a\n  {{- if .Values.x }}\n  labels: {}\n  {{- end }}\n`).join(), /Helm template/u);
  assert.match(
    errors(`${pod}  name: a\n{% if x %}\nspec: {}\n{% endif %}\n`).join(),
    /is a Jinja template: render it first/u,
  );
});

test("YAML that is broken elsewhere is not reported as a template because it contains one", () => {
  const text = `${pod}  name: a\n  annotations: {t: "{{ .x }}"}\n\n\n  labels: [\nspec: {}\n`;
  assert.doesNotMatch(errors(text).join(), /template/u);
});

test("a value with an unfilled placeholder is reported as such", () => {
  const hint = "; it contains an unfilled placeholder";
  const [problem = ""] = problems("{containers: [{name: c, image: i}]}", '{name: "${NAME}"}');
  assert.ok(problem.startsWith('metadata.name: Invalid value: "${NAME}": must consist of'), problem);
  assert.ok(problem.endsWith(hint), problem);
  assert.deepEqual(errors(`${pod}  name: a\nspec:\n  terminationGracePeriodSeconds: \${GRACE}\n  containers: []\n`), [
    `f:6:3: spec.terminationGracePeriodSeconds: expected a number, got a string${hint}`,
  ]);
  for (const plain of ["$", "{}", "a{b}c", "$HOME", "100%"]) assert.equal(placeholderHint(plain), "", plain);
});

test("a text of a million open brackets is handled quickly", () => {
  for (const open of ["{{", "{%"]) assert.equal(placeholderHint(open.repeat(500_000)), "");
});

test("a value with an action of a chart is a Helm template", () => {
  const hint = "; it is a Helm template: render it first (helm template)";
  for (const text of ["{{ .Values.image }}", "{{- .Release.Name }}-x", '{{ include "app.name" . }}', "{{$x}}"]) {
    assert.equal(placeholderHint(text), hint, text);
  }
  assert.equal(placeholderHint("{{ image }}"), "; it contains an unfilled placeholder");
});
