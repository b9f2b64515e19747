import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkListOptions } from "./list-options.ts";

describe("options of lists and watches", () => {
  const samples: readonly (readonly [verb: "list" | "watch", query: string, code: number | undefined])[] = [
    ["list", "limit=5&resourceVersion=0", undefined],
    ["list", "resourceVersion=5&resourceVersionMatch=Exact", undefined],
    ["list", "resourceVersionMatch=Exact", 422],
    ["list", "resourceVersion=0&resourceVersionMatch=Exact", 422],
    ["list", "resourceVersion=5&resourceVersionMatch=Roughly", 422],
    ["list", "sendInitialEvents=true", 422],
    ["list", "continue=abc&resourceVersion=5", 400],
    ["watch", "resourceVersion=5", undefined],
    ["watch", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan", undefined],
    ["watch", "sendInitialEvents=true", 422],
    ["watch", "resourceVersion=5&resourceVersionMatch=Exact", 422],
  ];
  for (const [verb, query, code] of samples) {
    it(`${verb} ${query} is ${code === undefined ? "accepted" : `rejected with ${code}`}`, () => {
      const check = (): void => checkListOptions(new URLSearchParams(query), verb);
      if (code === undefined) check();
      else assert.throws(check, { code });
    });
  }
});
