import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Violation } from "./style/source-file.ts";
import { logMessages, plainWords } from "./style/words.ts";

function rulesOf(violations: readonly Violation[]): string[] {
  return violations.map(({ line, rule }) => `${line}: ${rule}`);
}

describe("the rule for log messages", () => {
  const inFile = (text: string): string[] => rulesOf(logMessages({ path: "src/pods/x.ts", text }));

  it("catches values, long and capital messages and full stops", () => {
    const text = [
      "log.warn(`pod ${name} failed`);",
      `this.#log.info("${"a".repeat(81)}");`,
      'deps.log.error("Pod failed");',
      'log.debug("pod failed.", { name });',
      "const message = `pod ${name} failed`;",
      "log.info(message);",
    ].join("\n");
    assert.deepEqual(inFile(text), [
      "1: log message: holds a value",
      "2: log message: has 81 characters",
      "3: log message: begins with a capital",
      "4: log message: ends with a full stop",
      "6: log message: holds a value",
    ]);
  });
  it("lets constant clauses, abbreviations and flags pass", () => {
    const text = ['log.warn("API server rejects a watch", { error });', 'log.info("--node-ip is unverified");'].join(
      "\n",
    );
    assert.deepEqual(inFile(text), []);
  });
});

describe("the rule for plain words", () => {
  const inFile = (text: string): string[] => rulesOf(plainWords({ path: "src/pods/x.ts", text }));

  it("catches translated phrases, in texts and comments", () => {
    assert.deepEqual(inFile('// It is made anew.\nthrow new Error("nobody tells of it");'), [
      "2: plain words: “nobody tells”",
      "1: plain words: “made anew”",
    ]);
  });
  it("catches them in any form", () => {
    const forms = [
      "It goes on waiting.",
      "They went on where they were.",
      "Pods that were let in",
      "a pod is told at once",
      "The volume is taken back.",
      "Found on the disk by what lies there.",
      "A stage that failed for sure",
      "A dead server holds up the start.",
      "A missing cgroup ends the start.",
    ];
    for (const form of forms) assert.equal(inFile(`// ${form}\n`).length, 1, form);
  });
  it("lets the field's words pass", () => {
    const words = "The sandbox is recreated, and OOM kills will not be reported. It goes on. A pod lets another in.";
    assert.deepEqual(inFile(`// ${words}\n`), []);
  });
});
