import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { IdleExit } from "./idle-exit.ts";

class Fixture {
  readonly clock = new ManualClock(0);
  readonly node = { isEmpty: true };
  hasWork = false;
  ends = 0;
  readonly idle = new IdleExit(
    this.clock,
    () => void this.ends++,
    () => this.hasWork,
  );
}

test("an engine ends half a minute after its start without pods, and two seconds after its last one", async () => {
  const fixture = new Fixture();
  fixture.idle.started(fixture.node);
  await fixture.clock.advance(29_000);
  assert.equal(fixture.ends, 0);
  await fixture.clock.advance(1000);
  assert.equal(fixture.ends, 1);
  const later = new Fixture();
  later.node.isEmpty = false;
  later.idle.started(later.node);
  await later.clock.advance(60_000);
  later.node.isEmpty = true;
  later.idle.podGone();
  await later.clock.advance(1000);
  assert.equal(later.ends, 0);
  await later.clock.advance(1000);
  assert.equal(later.ends, 1);
});

test("an engine with something left to do stays, and ends soon after that", async () => {
  const fixture = new Fixture();
  fixture.hasWork = true;
  fixture.idle.started(fixture.node);
  fixture.idle.podGone();
  await fixture.clock.advance(600_000);
  assert.equal(fixture.ends, 0);
  fixture.hasWork = false;
  await fixture.clock.advance(2000);
  assert.equal(fixture.ends, 1);
  fixture.node.isEmpty = false;
  fixture.idle.podGone();
  await fixture.clock.advance(600_000);
  assert.equal(fixture.ends, 1);
});
