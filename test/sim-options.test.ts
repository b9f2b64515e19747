import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { dirname } from "node:path";
import { describe, test } from "node:test";
import { UsageError } from "../scripts/command-options.ts";
import { readSimOptions, simHelp } from "../scripts/sim-options.ts";
import { drawPlan } from "../src/sim/life/plan.ts";

/** What a command line that can't be meant is answered. */
function refusal(line: string): string {
  try {
    readSimOptions(line.split(" "));
  } catch (error) {
    assert.ok(error instanceof UsageError);
    return error.message;
  }
  return "taken";
}

describe("the simulator's command line", () => {
  test("without options the first thousand lives are played, with a seed only its life", () => {
    const usual = { minutes: undefined, threads: undefined, isTraced: false, parts: {} };
    assert.deepEqual(readSimOptions([]), { first: 1, last: 1000, ...usual });
    assert.deepEqual(readSimOptions(["--seed", "7"]), { first: 7, last: 7, ...usual });
  });

  test("seeds are whole numbers from 1 to 4294967295", () => {
    for (const seed of ["0", "-1", "1.5", "abc", "4294967296", "9007199254740993", "99999999999999999999"]) {
      assert.equal(refusal(`--seed ${seed}`), `--seed must be a whole number from 1 to 4294967295, not "${seed}"`);
    }
    assert.equal(readSimOptions(["--seed=4294967295"])?.last, 4294967295);
    assert.match(
      refusal("--seed 4294967295 --seeds 2"),
      /beyond the last seed, 4294967295: from 4294967295 there are 1/,
    );
  });

  test("of --seeds and --minutes, the first limit counts", () => {
    const both = readSimOptions(["--seeds", "2", "--minutes", "1"]);
    assert.deepEqual([both?.first, both?.last, both?.minutes], [1, 2, 1]);
    assert.equal(readSimOptions(["--minutes", "1"])?.last, 4294967295);
  });

  test("steps require a single life", () => {
    const last = drawPlan(2).at(-1)?.index ?? 0;
    assert.deepEqual(readSimOptions(["--seed", "2", "--steps", `0,${last}`])?.parts, { steps: [0, last] });
    for (const steps of ["abc", "900", "0,,1", "1.5", `${last + 1}`]) {
      assert.ok(refusal(`--seed 2 --steps ${steps}`).includes(`0 to ${last}`), steps);
    }
    assert.match(refusal("--steps 0"), /--steps is a part of one life/);
    assert.match(refusal("--seed 2 --seeds 2 --steps 0"), /--steps is a part of one life/);
    assert.equal(refusal("--seed 2 --steps --trace"), "--steps needs a value: --steps LIST");
  });

  test("excluded features must be features of pods", () => {
    assert.deepEqual(readSimOptions(["--without", "probes,hooks"])?.parts, { without: ["probes", "hooks"] });
    assert.match(
      refusal("--without nonsense"),
      /no feature "nonsense": --without is a comma-separated list of init,hooks,/,
    );
  });

  test("unknown options are rejected with an explanation", () => {
    assert.equal(refusal("--bogus"), "unknown option --bogus");
    assert.equal(refusal("--toString"), "unknown option --toString");
    assert.equal(refusal("-x"), "unknown option -x");
    assert.equal(refusal("777"), 'unexpected argument "777"');
    assert.equal(refusal("--trace=yes"), "--trace takes no value");
    assert.equal(refusal("--seed 1 --seed 2"), "--seed is repeated");
  });

  test("--help has a line for each option", () => {
    assert.equal(readSimOptions(["--help"]), undefined);
    assert.equal(readSimOptions(["-h"]), undefined);
    for (const name of ["seed", "seeds", "minutes", "threads", "trace", "steps", "without", "help"]) {
      assert.match(simHelp, new RegExp(`^  --${name}( [A-Z]+)? +\\S+`, "m"));
    }
  });

  test("a refusal ends the command with exit code 2", () => {
    const cwd = dirname(import.meta.dirname);
    const command = ["scripts/sim.ts", "--seed", "4294967301"];
    const { status, stdout, stderr } = spawnSync(process.execPath, command, { cwd, encoding: "utf8" });
    assert.deepEqual([status, stdout], [2, ""]);
    assert.match(stderr, /from 1 to 4294967295, not "4294967301"\n/);
  });

  test("the command ends silently when its reader closes the pipe", async () => {
    const cwd = dirname(import.meta.dirname);
    const child = spawn(process.execPath, ["scripts/sim.ts", "--seed", "7", "--steps", "0"], { cwd });
    child.stdout.destroy();
    const words: unknown[] = [];
    child.stderr.on("data", (chunk) => words.push(String(chunk)));
    const [code] = (await once(child, "close")) as unknown[];
    assert.deepEqual([code, words], [0, []]);
  });
});
