import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import { blame, type Blame } from "./blame.ts";
import type { JournalEntry } from "./entry.ts";
import type { EntryName, NameOf } from "./vocabulary.ts";
import { renderBlame } from "./render-blame.ts";

const pod = { namespace: "default", name: "web", uid: podUid("u1") };
const cause = { code: "Resync", message: "a test" } as const;

/** The journal of one pod, with a clock that the test sets. */
class Story {
  readonly entries: JournalEntry[] = [];
  time = 0;

  at(time: number): this {
    this.time = time;
    return this;
  }

  say(what: EntryName, more: Partial<JournalEntry> = {}): number {
    const seq = this.entries.length + 1;
    this.entries.push({ kind: "observation", message: what, what, pod, ...more, seq, time: 1_000_000 + this.time });
    return seq;
  }

  /** An action of this duration; the clock is at its end afterwards. */
  does(
    what: NameOf<"action">,
    ms: number,
    more: Partial<JournalEntry> = {},
    outcome: Partial<JournalEntry> = {},
  ): this {
    const of = this.say(what, { ...more, kind: "action", cause });
    this.time += ms;
    const { container } = more;
    const same = container === undefined ? {} : { container };
    this.say(what, { ...same, kind: "outcome", of, result: "done", durationMs: ms, ...outcome });
    return this;
  }

  state(container: string, ready: boolean): this {
    this.say("ContainerStateChanged", { container, data: { ready } });
    return this;
  }

  starts(container: string, ms: number, kind = "regular"): this {
    this.does("CreateContainer", 10, { container, data: { attempt: 0 } });
    return this.does("StartContainer", ms, { container, data: { attempt: 0, kind } });
  }

  blame(now = this.time): Blame {
    const found = blame(this.entries, { name: "web" }, 1_000_000 + now);
    assert.ok(found);
    return found;
  }
}

/** `label@offset+duration`, prefixed with a star if on the chain and two if the longest of it. */
function brief({ phases }: Blame): string[] {
  return phases.map(({ container, label, offsetMs, durationMs, critical, longest }) => {
    const mark = longest ? "**" : critical ? "*" : "";
    return `${mark}${container === undefined ? "" : `${container} `}${label}@${offsetMs}+${durationMs}`;
  });
}

function wholeStartUp(): Story {
  const story = new Story();
  story.say("PodAdded", { kind: "input" });
  story.state("prep", false).state("app", false).state("side", false);
  const slow = story.at(5).say("MountVolume", { kind: "action", cause, data: { volume: "slow", type: "secret" } });
  story.does("MountVolume", 5, { data: { volume: "fast", type: "emptyDir" } });
  story.at(25).say("MountVolume", { kind: "outcome", of: slow, result: "done", durationMs: 20 });
  story.at(40).does("RunPodSandbox", 100, { data: { attempt: 0, queuedMs: 15 } });
  story.does("PullImage", 500, { container: "prep", data: { image: "i" } }, { data: { pullMs: 200 } });
  story.starts("prep", 50, "init").at(1000);
  story.say("ContainerDied", { container: "prep", data: { exitCode: 0, ranMs: 200 } });
  story.say("ImagePresent", { container: "app", kind: "decision" });
  story.starts("app", 40).does("PostStartHook", 60, { container: "app" });
  story.say("ImagePresent", { container: "side", kind: "decision" });
  story.starts("side", 20).state("side", true).at(3000).state("app", true);
  return story;
}

test("a start-up is split into phases, and the critical chain excludes parallel work", () => {
  const startUp = wholeStartUp().blame();
  assert.deepEqual([startUp.outcome, startUp.totalMs], ["ready", 3000]);
  assert.deepEqual(brief(startUp), [
    "*volume slow (secret)@5+20",
    "volume fast (emptyDir)@5+5",
    "*sandbox@25+115",
    "*prep pull i@140+500",
    "*prep create@640+10",
    "*prep start@650+50",
    "*prep ran, exit code 0@700+200",
    "*prep until its end was observed@900+100",
    "*app image present@1000+0",
    "*app create@1000+10",
    "*app start@1010+40",
    "*app postStart hook@1050+60",
    "**app until ready@1110+1890",
    "side image present@1110+0",
    "side create@1110+10",
    "side start@1120+20",
    "side until ready@1140+0",
  ]);
  const queued = startUp.phases.flatMap(({ label, queuedMs }) => (queuedMs === undefined ? [] : [[label, queuedMs]]));
  assert.deepEqual(queued, [
    ["sandbox", 15],
    ["pull i", 300],
  ]);
});

test("a container waits for no sibling to be ready, except for an earlier sidecar", () => {
  const story = new Story();
  story.state("proxy", false).state("web", false).state("client", false);
  story.starts("proxy", 10, "sidecar").at(100).state("proxy", true);
  story.starts("web", 10).at(125).state("web", true);
  story.at(126).starts("client", 10).at(160).state("client", true);
  assert.deepEqual(brief(story.blame()), [
    "*proxy create@0+10",
    "*proxy start@10+10",
    "**proxy until ready@20+80",
    "*web create@100+10",
    "*web start@110+10",
    "web until ready@120+5",
    "*client create@126+10",
    "*client start@136+10",
    "*client until ready@146+14",
  ]);
});

test("the time between a sidecar's readiness and the next start is podwright's, because the sidecar has not ended", () => {
  const story = new Story();
  story.state("proxy", false).state("web", false);
  story.starts("proxy", 10, "sidecar").at(100).state("proxy", true);
  story.at(140).starts("web", 10).at(170).state("web", true);
  assert.deepEqual(brief(story.blame()), [
    "*proxy create@0+10",
    "*proxy start@10+10",
    "**proxy until ready@20+80",
    "*podwright overhead@100+40",
    "*web create@140+10",
    "*web start@150+10",
    "*web until ready@160+10",
  ]);
});

test("what follows the first Ready does not belong to the start-up", () => {
  const story = wholeStartUp();
  const before = brief(story.blame());
  story.at(9000).state("app", false);
  story.does("StopContainer", 50, { container: "app" }).starts("app", 10);
  assert.deepEqual(brief(story.blame(60_000)), before);
});

test("a crash loop and a failed pull before the first Ready are on the chain with their waits", () => {
  const story = new Story();
  story.say("PodAdded", { kind: "input" });
  story.state("app", false).does("PullImage", 30, { container: "app" }, { result: "failed" });
  story.say("ImagePullBackOff", { kind: "decision", container: "app", until: 1 });
  story.say("StartRetry", { kind: "decision", container: "app", until: 1 });
  story.at(10_030).does("PullImage", 20, { container: "app" }).starts("app", 10).at(10_500);
  story.say("ContainerDied", { container: "app", data: { exitCode: 3 } });
  story.say("BackOff", { kind: "decision", container: "app", until: 1 });
  story.at(20_500).starts("app", 10).state("app", true);
  assert.deepEqual(brief(story.blame()), [
    "*app pull @0+30",
    "**app image pull back-off@30+10000",
    "*app pull @10030+20",
    "*app create@10050+10",
    "*app start@10060+10",
    "*app ran, exit code 3@10070+430",
    "*app crash-loop back-off@10500+10000",
    "*app create@20500+10",
    "*app start@20510+10",
    "*app until ready@20520+0",
  ]);
  assert.deepEqual(
    story
      .blame()
      .phases.filter(({ result }) => result === "failed")
      .map(({ label }) => label),
    ["pull ", "ran, exit code 3"],
  );
});

test("a pod that is not ready yet shows its phases up to now", () => {
  const story = new Story();
  story.say("PodWaits", { kind: "decision" });
  assert.deepEqual(brief(story.blame(700)), ["**waited for the removal of the pod of the same name@0+700"]);
  story.at(800).say("RunPodSandbox", { kind: "action", cause });
  const startUp = story.blame(1000);
  assert.equal(startUp.outcome, "starting");
  assert.deepEqual(brief(startUp), ["**waited for the removal of the pod of the same name@0+800", "*sandbox@800+200"]);
  assert.equal(startUp.phases[1]?.result, "running");
});

test("a pod that completed without being ready is measured up to its end", () => {
  const story = new Story();
  story.state("job", false).starts("job", 10).at(500);
  story.say("ContainerDied", { container: "job", data: { exitCode: 0 } });
  story.say("PodPhaseChanged", { data: { to: "Succeeded" } });
  story.at(9000).does("RemoveContainer", 10, { container: "job" });
  const startUp = story.blame(60_000);
  assert.deepEqual([startUp.outcome, startUp.totalMs], ["ended", 500]);
  assert.deepEqual(brief(startUp), ["*job create@0+10", "*job start@10+10", "**job ran, exit code 0@20+480"]);
});

test("of several pods of one name the newest is measured, and an unknown one has no result", () => {
  const story = wholeStartUp();
  story.at(5000).say("PodAdded", { kind: "input", pod: { ...pod, uid: podUid("u2") } });
  assert.equal(story.blame().incarnation.pod.uid, "u2");
  assert.deepEqual(story.blame().phases, []);
  assert.equal(blame(story.entries, { name: "stranger" }, 0), undefined);
});

test("a later start is not presented as the first one, whose entries the journal has lost", () => {
  const story = new Story();
  story.say("ContainerDied", { container: "app", data: { exitCode: 1 } });
  story.starts("app", 10).at(500).state("app", true);
  const startUp = story.blame();
  assert.equal(startUp.incarnation.truncated, true);
  const lines = renderBlame(startUp, { timeZone: "UTC" }).split("\n");
  assert.equal(lines[0], "default/web  uid u1, oldest entry 1970-01-01 00:16:40.000");
  assert.match(lines[1] ?? "", /^the journal does not have its first entries: /u);
  assert.doesNotMatch(lines.join("\n"), /for the first time/u);
  assert.equal(wholeStartUp().blame().incarnation.truncated, undefined);
});

test("the text is aligned, marks the longest phase and contains no control character", () => {
  const story = wholeStartUp();
  const lines = renderBlame(story.blame(), { timeZone: "UTC" }).split("\n");
  assert.equal(lines[0], "default/web  uid u1, first seen 1970-01-01 00:16:40.000");
  assert.equal(lines[1], "ready for the first time after 3.0 s");
  assert.equal(lines[3], "│        +5 ms       20 ms        volume slow (secret)");
  assert.equal(lines[5], "│       +25 ms      115 ms        sandbox (queued 15 ms)");
  assert.equal(lines[6], "│      +140 ms      500 ms  prep  pull i (queued 300 ms)");
  assert.equal(lines[15], "│       +1.1 s       1.9 s  app   until ready  ← longest");
  const hostile = new Story();
  hostile.does("PullImage", 1, { container: "app", data: { image: "\u001b[2J" } });
  assert.doesNotMatch(renderBlame(hostile.blame()), /\u001b/u);
});
