import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { FileError } from "../../ports/files.ts";
import { findVariable, readEnvironmentFiles } from "./environment-file.ts";

const find = (text: string, name: string): string | undefined => {
  const value = findVariable(new TextEncoder().encode(text), name);
  return value && new TextDecoder().decode(value);
};

const file = `
# a comment
  A='1'
B='two words, $(A) "and" \\n # all of it'  # a comment
C='several
  # lines
'
D= 'nothing'
EMPTY=''
LAST='first'
LAST='second'\r
`;

test("an env file has values in single quotes, also over several lines, and comments", () => {
  assert.equal(find(file, "A"), "1");
  assert.equal(find(file, "B"), 'two words, $(A) "and" \\n # all of it');
  assert.equal(find(file, "C"), "several\n  # lines\n");
  assert.equal(find(file, "LAST"), "first", "the first definition counts");
  for (const name of ["D", "EMPTY", "NONE"]) assert.equal(find(file, name), undefined, name);
  assert.equal(find("A='x\r\ny'\r\n", "A"), "x\ny");
});

const bad: readonly (readonly [text: string, problem: RegExp])[] = [
  ["export", /line 1: missing '='$/],
  ["A='1'\n='2'", /line 2: empty variable name$/],
  ["A ='1'", /line 1: whitespace before '=' is not allowed$/],
  ["A=secret", /line 1: value must be enclosed in single quotes$/],
  ['A="secret"', /line 1: value must be enclosed in single quotes$/],
  ["A='1'\nB='secret\n\n", /line 2: unclosed single quote$/],
  ["A='1\n' secret", /line 2: unexpected content after closing quote$/],
];
for (const [text, problem] of bad) {
  test(`${JSON.stringify(text)} is not an env file, and its content is not shown`, () => {
    assert.throws(() => find(text, "Z"), problem);
  });
}

test("content after the variable is not parsed", () => {
  assert.equal(find("A='1'\nnonsense", "A"), "1");
});

test("all bytes except a quote are preserved", () => {
  const value = fc.uint8Array({ minLength: 1 }).filter((bytes) => !bytes.includes(0x27) && !bytes.includes(0x0d));
  fc.assert(
    fc.property(value, (bytes) => {
      const content = Buffer.concat([Buffer.from("X='a'\nY='"), bytes, Buffer.from("'\n")]);
      assert.deepEqual(new Uint8Array(findVariable(content, "Y") ?? []), bytes);
    }),
  );
});

test("each file is read once, and an unreadable one is named", async () => {
  const reads: string[] = [];
  const volumes = {
    readFile: async (_: unknown, path: string): Promise<Uint8Array> => {
      reads.push(path);
      if (path === "out") throw new FileError("EXDEV", path, "EXDEV: the path leads out of the volume");
      return new Uint8Array([1]);
    },
  };
  const container = (...paths: readonly string[]) => ({
    name: "c",
    env: paths.map((path) => ({ name: "A", valueFrom: { fileKeyRef: { volumeName: "v", path, key: "K" } } })),
  });
  const mounted = new Map([["v", { hostPath: "/v", readOnly: false, own: true }]]);
  const files = await readEnvironmentFiles(volumes, container("a", "a", "b"), mounted);
  assert.deepEqual(reads, ["a", "b"]);
  assert.deepEqual([files("v", "a"), files("v", "c")], [new Uint8Array([1]), undefined]);
  await assert.rejects(
    readEnvironmentFiles(volumes, container("out"), mounted),
    /couldn't read env file "out" of volume "v": EXDEV/u,
  );
  await assert.rejects(readEnvironmentFiles(volumes, container("a"), new Map()), /cannot find the volume "v"/u);
});

test("the files of a container have a limit together", async () => {
  const volumes = { readFile: async (): Promise<Uint8Array> => new Uint8Array(1 << 20) };
  const env = Array.from({ length: 3000 }, (_, index) => {
    return { name: "A", valueFrom: { fileKeyRef: { volumeName: "v", path: `${index}`, key: "K" } } };
  });
  const mounted = new Map([["v", { hostPath: "/v", readOnly: false, own: true }]]);
  await assert.rejects(readEnvironmentFiles(volumes, { name: "c", env }, mounted), {
    message: 'env file "5" of volume "v" does not fit: the env files of a container have at most 6291456 bytes',
  });
});
