import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { messagesPage, messagesPath } from "../scripts/messages.ts";
import { catalogue } from "../src/journal/catalogue.ts";
import { imageErrorReasons } from "../src/images/image-error.ts";

const root = dirname(import.meta.dirname);
const entries = catalogue();
const names = new Set(entries.map(({ name }) => name));

test("docs/messages.md is what scripts/messages.ts makes", () => {
  assert.equal(readFileSync(join(root, messagesPath), "utf8"), messagesPage(), "run scripts/messages.ts");
});

test("every class of errors has a meaning, and every meaning of one has a class", () => {
  const paths = globSync("src/**/*.ts", { cwd: root, exclude: ["**/*.test.ts"] });
  const classes = paths.flatMap((path) => {
    const text = readFileSync(join(root, path), "utf8");
    return [...text.matchAll(/^(?:export )?class (\w+Error) /gmu)].map((match) => match[1] ?? "");
  });
  assert.ok(classes.length > 20);
  assert.deepEqual(
    classes.filter((name) => !names.has(name)),
    [],
    "add it to src/journal/meanings/errors.ts",
  );
  const known = new Set(classes);
  assert.deepEqual(
    entries.filter(({ kind, name }) => kind === "error" && !known.has(name)).map(({ name }) => name),
    [],
  );
});

test("every reason for which an image is missing has a meaning", () => {
  assert.deepEqual(
    imageErrorReasons.filter((reason) => !names.has(reason)),
    [],
  );
});

test("every waiting reason that a start fails with has a meaning", () => {
  const paths = globSync("src/runtime/operations/*.ts", { cwd: root, exclude: ["**/*.test.ts"] });
  const reasons = paths.flatMap((path) => {
    const text = readFileSync(join(root, path), "utf8");
    return [
      ...text.matchAll(/(?:new StartError\(|reason: |= )"((?:Create|Run|PostStart|Kill)\w+Error|ContainerCreating)"/gu),
    ];
  });
  assert.ok(reasons.length > 4);
  for (const [, reason = ""] of reasons) assert.ok(names.has(reason), reason);
});

test("meanings and remedies are sentences, and a remedy says what to do", () => {
  for (const { name, means, remedy } of entries) {
    assert.match(means, /^[A-Z\d].*[.]$|^podwright .*[.]$/u, name);
    if (remedy !== undefined) assert.match(remedy, /^[A-Z].*[.]$/u, name);
    assert.ok(means.length <= 200 && (remedy?.length ?? 0) <= 140, `${name} is long`);
  }
});
