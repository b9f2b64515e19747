import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { tellFailure } from "../scripts/sim-failure.ts";
import type { Mutant } from "../scripts/sim-mutant-list.ts";
import { SimPool } from "../scripts/sim-pool.ts";
import { drawPlan } from "../src/sim/life/plan.ts";

const seed = 2;
const file = "src/pods/step-schedule.ts";
const wake = "if (this.#causes.length < manyCauses) this.#causes.push(cause);";
const usualLimits = { tries: 6, totalMs: 40_000, eachMs: 30_000 };
/** Each try of a life that hangs takes all of its time. */
const hangLimits = { tries: 3, totalMs: 10_000, eachMs: 4000 };

/** The report of the seed's life on sources with this fault, and the rule that it broke. */
async function told(
  fault: Pick<Mutant, "from" | "to">,
  limits = usualLimits,
): Promise<{ readonly text: string; readonly rule: string }> {
  await using pool = new SimPool(1, { name: "fault", file, ...fault });
  const report = await pool.play(seed, {}, { limitMs: limits.eachMs });
  assert.deepEqual(report.plan, drawPlan(seed));
  return { text: await tellFailure(pool, report, {}, limits), rule: report.problems[0]?.rule ?? "" };
}

/** Steps remain, the report shows what led to the failure, and the command plays one life. */
function assertWhole(text: string, rule: string): void {
  assert.match(text, new RegExp(`^seed 2: ${rule}, at \\d+ ms`));
  const [, left = "", all] = /(\d+) of (\d+) steps are left after \d+ tries/.exec(text) ?? [];
  assert.ok(Number(left) >= 1 && Number(left) < Number(all), text);
  assert.equal(Number(all), drawPlan(seed).length);
  assert.match(text, /^    step \d+ at \d+ ms: \w+$/m);
  assert.match(text, /^      adds pod\d+ \(uid-\d+\): restartPolicy \w+.*\n {10}(init )?container \w+: sim /m);
  assert.match(text, / ---- step \d+: \w+/);
  assert.match(text, / BROKEN /);
  assert.match(text, /again: npm run sim -- --seed 2 --steps \d+(,\d+)*( --without [\w,]+)? --trace$/);
}

test("a reported life equals an unreported one", async () => {
  await using pool = new SimPool(1);
  const inCluster = 10;
  const { digest } = await pool.play(inCluster, {}, { onHappening: () => {} });
  assert.equal(digest, (await pool.play(inCluster)).digest);
});

describe("the report of a simulated life that failed", () => {
  test("an unhandled rejection is reported like any broken rule", async () => {
    const { text, rule } = await told({ from: wake, to: `${wake} void Promise.reject(new Error("nobody sees me"));` });
    assert.equal(rule, "no unhandled rejection");
    assertWhole(text, rule);
    assert.match(text, /nobody sees me\n\s+at .*step-schedule\.ts/);
  });

  test("an error thrown in a timer is reported with the events before it", async () => {
    const to = `${wake} this.#clock.timer("fault", 5, () => { throw new Error("thrown at the clock"); });`;
    const { text, rule } = await told({ from: wake, to });
    assert.equal(rule, "the simulation goes on");
    assertWhole(text, rule);
    assert.match(text, /thrown at the clock/);
  });

  test("whatever ends the thread itself is reported as well", async () => {
    const to = `${wake} queueMicrotask(() => { throw new Error("thrown at nobody"); });`;
    const { text, rule } = await told({ from: wake, to });
    assert.equal(rule, "the simulation goes on");
    assertWhole(text, rule);
    assert.match(text, /thrown at nobody/);
  });

  test("a timer that repeats without time passing is reported with its name", async () => {
    const to = `${wake} const again = () => void this.#clock.timer("a fault", 0, again); again();`;
    const { text, rule } = await told({ from: wake, to });
    assert.equal(rule, "the simulation goes on");
    assertWhole(text, rule);
    assert.match(text, /time stands still at \d+ ms: a fault/);
  });

  test("a life that hangs is shrunk while there is time, and reported up to its standstill", async () => {
    const { text, rule } = await told({ from: wake, to: `${wake} while (this.#causes.length > 0);` }, hangLimits);
    assert.equal(rule, "a life comes to its end");
    assertWhole(text, rule);
  });
});
