import assert from "node:assert/strict";
import { test } from "node:test";
import { settle } from "../../test/support/manual-clock.ts";
import { ImageLeases } from "./image-leases.ts";

const image = "sha256:1";

/** A removal that the test ends. */
function removal() {
  const { promise, resolve } = Promise.withResolvers<void>();
  let begun = 0;
  const work = async (): Promise<void> => {
    begun++;
    await promise;
  };
  return { work, end: resolve, begun: () => begun };
}

test("an image leased by a start is not removed", async () => {
  const leases = new ImageLeases();
  const lease = leases.take();
  assert.equal(await lease.settle(image), true);
  using survey = leases.survey();
  const { work, begun } = removal();
  assert.equal(survey.isLeased(image), true);
  assert.equal(await survey.remove(image, work), false);
  lease[Symbol.dispose]();
  assert.equal(await survey.remove(image, work), false, "its container is in no list that this survey has");
  assert.equal(begun(), 0);
});

test("an image whose lease ended before the survey is removed", async () => {
  const leases = new ImageLeases();
  {
    using lease = leases.take();
    await lease.settle(image);
  }
  using survey = leases.survey();
  assert.equal(survey.isLeased(image), false);
  assert.equal(await survey.remove(image, async () => {}), true);
});

test("a start between the survey and the removal keeps its image, with or without a container", async () => {
  const leases = new ImageLeases();
  using survey = leases.survey();
  {
    using lease = leases.take();
    assert.equal(await lease.settle(image), true);
  }
  assert.equal(await survey.remove(image, async () => {}), false);
});

test("a start that checked before a removal started checks again afterwards, and waits for no other removal", async () => {
  const leases = new ImageLeases();
  using lease = leases.take();
  using survey = leases.survey();
  const { work, end } = removal();
  const removed = survey.remove(image, work);
  assert.equal(await lease.settle("sha256:other"), true);
  let settled: boolean | undefined;
  void lease.settle(image).then((value) => (settled = value));
  await settle();
  assert.equal(settled, undefined);
  end();
  assert.equal(await removed, true);
  await settle();
  assert.equal(settled, false);
  assert.equal(await lease.settle(image), true, "pulled anew since");
});

test("a lease taken while its image is being removed looks again as well", async () => {
  const leases = new ImageLeases();
  using survey = leases.survey();
  const { work, end } = removal();
  const removed = survey.remove(image, work);
  using lease = leases.take();
  end();
  await removed;
  assert.equal(await lease.settle(image), false);
  assert.equal(await lease.settle(image), true);
});

test("a failed removal lets starts continue", async () => {
  const leases = new ImageLeases();
  using survey = leases.survey();
  using lease = leases.take();
  await assert.rejects(
    survey.remove(image, async () => await Promise.reject(new Error("in use"))),
    /in use/u,
  );
  assert.equal(await lease.settle(image), false);
  assert.equal(await lease.settle(image), true);
});

test("an image is removed only after both of its starts have ended", async () => {
  const leases = new ImageLeases();
  const [first, second] = [leases.take(), leases.take()];
  await first.settle(image);
  await second.settle(image);
  first[Symbol.dispose]();
  using survey = leases.survey();
  assert.equal(survey.isLeased(image), true);
  second[Symbol.dispose]();
  second[Symbol.dispose]();
  using later = leases.survey();
  assert.equal(later.isLeased(image), false);
});
