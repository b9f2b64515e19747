import assert from "node:assert/strict";
import { test } from "node:test";
import { transform } from "esbuild";
import { bundleTarget } from "../scripts/bundle-target.ts";

const source = `
  export async function attempts(): Promise<number> {
    for (let tries = 1; ; tries++) {
      try {
        using _turn = await Promise.resolve({ [Symbol.dispose](): void {} });
        if (tries < 3) throw new Error("not yet");
        return tries;
      } catch (error) {
        if (tries > 3) throw error;
      }
    }
  }`;

test("in the bundle a loop that goes on after an error forgets it, also where it holds a resource", async () => {
  const { code } = await transform(source, { ...bundleTarget, loader: "ts", format: "esm" });
  const url = `data:text/javascript,${encodeURIComponent(code)}`;
  const { attempts } = (await import(url)) as { readonly attempts: () => Promise<number> };
  assert.equal(await attempts(), 3);
});
