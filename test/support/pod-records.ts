import type { Deed, RichKind } from "./rich-pods.ts";

/** Actions that must be in order, as `container deed`; missing ones are skipped. */
const order: Readonly<Record<RichKind, readonly (readonly string[])[]>> = {
  service: [
    ["first start", "first done", "mesh start", "second start", "second done", "app start", "app end", "mesh end"],
    ["app start", "app hook-stop", "app end"],
  ],
  job: [
    ["prepare start", "prepare failed", "prepare done", "outer start", "inner start", "work start", "work failed"],
    ["work failed", "work done", "inner end", "outer end"],
    ["work end", "inner end", "outer end"],
  ],
  restarter: [],
  node: [["init start", "main start", "main end", "init end"]],
};

/** How often a container of a pod may start. Undefined: as often as it exits. */
const starts: Readonly<Record<RichKind, Readonly<Record<string, number>>>> = {
  service: { first: 1, mesh: 1, second: 1, app: 1 },
  job: { prepare: 2, outer: 1, inner: 1, work: 2 },
  restarter: { calm: 1 },
  node: { init: 1, main: 1 },
};

/**
 * Violations in a pod's record; a sentence each. The pod's versions were successive.
 * @param cutOff number of a container's starts that the runtime undid because podwright was killed during the call; the
 *   container may have run
 */
export function recordProblems(
  kind: RichKind,
  deeds: readonly Deed[],
  cutOff: (container: string) => number,
): string[] {
  const problems: string[] = [];
  for (const [index, { version }] of deeds.entries()) {
    const before = deeds[index - 1]?.version ?? 0;
    if (version < before) problems.push(`version ${version} did something after version ${before} had begun`);
  }
  for (const version of new Set(deeds.map((deed) => deed.version))) {
    const own = deeds.filter((deed) => deed.version === version);
    const told = own.map(({ name, what }) => `${name} ${what}`);
    const history = `version ${version}: ${told.join(", ")}`;
    for (const wanted of order[kind]) if (!isInOrder(told, wanted)) problems.push(`out of order in ${history}`);
    for (const name of new Set(own.map((deed) => deed.name))) {
      const unended = overlaps(own.filter((deed) => deed.name === name));
      if (unended > cutOff(name)) problems.push(`${name} started before it ended in ${history}`);
    }
    for (const [name, most] of Object.entries(starts[kind])) {
      const count = told.filter((deed) => deed === `${name} start`).length;
      if (count > most + cutOff(name)) problems.push(`${name} started ${count} times in ${history}`);
    }
  }
  return problems;
}

/** How often a container was started before its previous instance had recorded its end. */
function overlaps(deeds: readonly Deed[]): number {
  let runs = false;
  let count = 0;
  for (const { what } of deeds) {
    if (what === "start" && runs) count++;
    if (what === "start") runs = true;
    else if (["done", "failed", "end"].includes(what)) runs = false;
  }
  return count;
}

/** By the first occurrence of each. */
function isInOrder(told: readonly string[], wanted: readonly string[]): boolean {
  const places = wanted.map((deed) => told.indexOf(deed)).filter((place) => place >= 0);
  return places.every((place, index) => index === 0 || place > (places[index - 1] ?? 0));
}
