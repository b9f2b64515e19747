import assert from "node:assert/strict";
import { test } from "node:test";
import { besideOther, type ClusterFigures, floorGoals, restTable, timesTable } from "./cluster-report.ts";

const rest = { cpuPercent: 0.1, rssMiB: 60 };

/** A kubelet that takes this many times as long as the floor, and more. */
function figures(kubelet: string, times: number): ClusterFigures {
  const round = (factor: number) => {
    return { started: [100 * factor], ready: [100 * factor, 200 * factor], gone: [50 * factor] };
  };
  const alone = (factor: number) => ({ ready: [100 * factor], gone: [40 * factor] });
  const atRest = (pods: number, dead: number, cpuPercent: number) => {
    return { pods, dead, floor: rest, kubelet: { cpuPercent, rssMiB: 100 + times } };
  };
  return {
    kubelet,
    outcomes: [{ pods: 2, floor: [round(1)], kubelet: [round(times)] }],
    oneByOne: { floor: alone(1), kubelet: alone(times) },
    backToBack: { floor: alone(0.5), kubelet: alone((times * times) / 1.28) },
    restarts: { floor: [70], kubelet: [70 * times], shown: [90 * times] },
    statuses: { floor: [1000, 2000], kubelet: [1000 * times, 2000 * times] },
    rests: [atRest(20, 0, times), atRest(50, 0, 3 * times)],
  };
}

const podwright = figures("podwright", 1.2);
const other = figures("kubelet", 3);

test("each kubelet's times are beside its floor's with the ratio of the two", () => {
  const { columns, rows } = timesTable(podwright);
  assert.equal(columns[4], "podwright p50");
  const shown = rows.map(([name, ...cells]) => [name, cells[2], cells[5], cells.at(-1)]);
  assert.deepEqual(shown, [
    ["2 pods, started", 100, 120, "1.20"],
    ["2 pods, ready", 200, 240, "1.20"],
    ["2 pods, gone", 50, 60, "1.20"],
    ["1 pods one by one, ready", 100, 120, "1.20 (p50)"],
    ["1 pods one by one, gone", 40, 48, "1.20 (p50)"],
    ["1 pods back to back, ready", 50, 112.5, "2.25 (p50)"],
    ["1 pods back to back, gone", 20, 45, "2.25 (p50)"],
    ["1 restarts", 70, 84, "1.20 (p50)"],
    ["2 statuses of refused pods", 2000, 2400, "1.20"],
  ]);
});

test("rest is beside the floor's of the same minute, with the number of dead containers", () => {
  const dead = { pods: 5, dead: 30, floor: rest, kubelet: { cpuPercent: 3.14, rssMiB: 119 } };
  assert.deepEqual(restTable({ ...podwright, rests: [...podwright.rests, dead] }).rows.slice(1), [
    ["at rest, 50 pods", "0.10", "3.60", 60, 101.2],
    ["at rest, 5 pods beside 30 dead containers", "0.10", "3.14", 60, 119],
  ]);
});

test("podwright's goals relative to the floor are 1.3 for starts and restarts, 2.3 for deletions, 3 s for statuses", () => {
  const goals = floorGoals(podwright).map(({ name, atMost, value, unit }) => [name, value.toFixed(2), atMost, unit]);
  assert.deepEqual(goals, [
    ["2 pods, all ready", "1.20", 1.3, "×"],
    ["2 pods, all gone", "1.20", 2.3, "×"],
    ["1 pods one by one, ready, median", "1.20", 1.3, "×"],
    ["1 pods one by one, gone, median", "1.20", 2.3, "×"],
    ["median restart", "1.20", 1.3, "×"],
    ["2 statuses", "2400.00", 3000, "ms"],
  ]);
});

test("relative to another kubelet the goals are half its start, a quarter of its delete, a third of its CPU, no more than its memory", () => {
  const [first, ...others] = podwright.rests;
  assert.ok(first !== undefined);
  const worse = { ...first, kubelet: { cpuPercent: 1.5, rssMiB: 90 } };
  const dead = { ...first, dead: 30, kubelet: { cpuPercent: 90, rssMiB: 900 } };
  const { goals, table } = besideOther({ ...podwright, rests: [worse, ...others, dead] }, other);
  assert.deepEqual(
    goals.map(({ name, value, atMost, unit }) => [name, value.toFixed(2), atMost, unit]),
    [
      ["start: one by one, ready, median", "0.40", 1 / 2, "× other"],
      ["start: back to back, ready, median", "0.16", 1 / 2, "× other"],
      ["delete: one by one, gone, median", "0.40", 1 / 4, "× other"],
      ["delete: back to back, gone, median", "0.16", 1 / 4, "× other"],
      // Of 20 pods 1.5 of 3 %, of 50 pods 3.6 of 9 %.
      ["CPU at rest, at worst", "0.50", 1 / 3, "× other"],
      // Of 20 pods 90 of 103 MiB, of 50 pods 101.2.
      ["RSS at rest, at worst", "0.98", 1, "× other"],
    ],
  );
  assert.deepEqual(table.columns, ["", "podwright", "kubelet", "ratio"]);
  assert.deepEqual(
    table.rows.find(([name]) => name === "at rest, 20 pods, CPU"),
    ["at rest, 20 pods, CPU", "1.50 % of a core", "3.00 % of a core", "0.50"],
  );
});

test("without rest there are no goals for it", () => {
  const { goals } = besideOther({ ...podwright, rests: [] }, { ...other, rests: [] });
  assert.equal(goals.length, 4);
});
