import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { Collection } from "../objects/collection.ts";
import { CsiDriverObjects } from "./csi-driver-objects.ts";
import { LocalDrivers } from "./local-drivers.ts";

test("drivers are known from their documents, also from later ones", async () => {
  const local = new LocalDrivers();
  const objects = new CsiDriverObjects(new ManualClock(), new Collection());
  objects.connect(local.watch);
  const end = new AbortController();
  objects.start(end.signal);
  assert.equal(await objects.get("d", end.signal), undefined);
  const { nextChange } = objects;
  local.set([{ metadata: { name: "d" }, spec: { attachRequired: false } }]);
  await nextChange;
  assert.equal((await objects.get("d", end.signal))?.spec.attachRequired, false);
  local.set([]);
  assert.equal(await objects.get("d", end.signal), undefined);
  end.abort();
});
