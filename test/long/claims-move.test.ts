import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { testDirectory } from "../../src/linux/processes/testing.ts";
import { deployWithClaims } from "../support/claimed-set.ts";
import type { RunningCommand } from "../support/command.ts";
import { noControlPlane } from "../support/control-plane.ts";
import { CsiControllers } from "../support/csi-controllers.ts";
import { CsiDriver } from "../support/csi-driver.ts";
import { noKubectl } from "../support/kubectl.ts";
import { limitMs, type Member, withMembers } from "../support/member.ts";
import { until } from "../support/podwright.ts";

/** Long enough for the attach-detach controller, which looks ten times a second, to detach what it may. */
const temptingMs = 3_000;

/** A node with its driver, whose volumes are the other node's too. */
interface Place {
  readonly member: Member;
  readonly driver: CsiDriver;
  readonly name: string;
  kubelet: RunningCommand;
}

/** The driver's only volume, as the API server knows it. */
class Volume {
  readonly #member: Member;
  readonly #driver: string;
  readonly #claim: string;
  /** What each start of its pod has written. */
  readonly names: string;

  private constructor(member: Member, driver: CsiDriver, claim: string) {
    this.#member = member;
    this.#driver = driver.name;
    this.#claim = claim;
    this.names = join(driver.volumes.content(this.handle), "names");
  }

  static async of({ member, driver }: Place): Promise<Volume> {
    const uid = await member.kubectl.succeed("get", "pvc", "data-db-0", "-o", "jsonpath={.metadata.uid}");
    return new Volume(member, driver, uid);
  }

  get handle(): string {
    return `handle-${this.#claim}`;
  }

  get starts(): number {
    return readFileSync(this.names, "utf8").trimEnd().split("\n").length;
  }

  async isInUse({ name }: Place): Promise<boolean> {
    const inUse = await this.#member.kubectl.succeed("get", "node", name, "-o", "jsonpath={.status.volumesInUse}");
    return inUse.includes(`${this.#driver}^${this.handle}`);
  }

  /** Where it is attached, and not about to be detached. */
  async attachedTo(): Promise<string> {
    const shown = "jsonpath={range .items[*]}{.spec.nodeName} {.status.attached} {.metadata.deletionTimestamp};{end}";
    return await this.#member.kubectl.succeed("get", "volumeattachments", "-o", shown);
  }
}

const attachedTo = ({ name }: Place): string => `${name} true ;`;

/** The pod's uid and its node. */
async function podNow({ member }: Place): Promise<string> {
  const shown = "jsonpath={.metadata.uid} {.spec.nodeName}";
  const { stdout } = await member.kubectl.run(["get", "pod", "db-0", "-o", shown]);
  return stdout.toString("utf8");
}

/** Drains the pod from one node to the other, and stops at each call to see that nothing has run ahead of it. */
async function moves(volume: Volume, from: Place, to: Place): Promise<void> {
  const { kubectl } = from.member;
  const pod = await podNow(from);
  assert.ok(pod.endsWith(` ${from.name}`), pod);
  const starts = volume.starts;
  const stops = {
    unpublish: from.driver.stopAt("NodeUnpublishVolume", "before"),
    unstage: from.driver.stopAt("NodeUnstageVolume", "before"),
    stage: to.driver.stopAt("NodeStageVolume", "before"),
  };
  await kubectl.succeed("cordon", from.name);
  await kubectl.succeed("delete", "pod", "db-0", "--wait=false");
  const beganMs = performance.now();

  await stops.unpublish.reached;
  await sleep(temptingMs);
  assert.equal(await podNow(from), pod, "it stays until its volume is unpublished");
  stops.unpublish.release();

  await stops.unstage.reached;
  await sleep(temptingMs);
  assert.deepEqual(from.driver.volumes.published(volume.handle), []);
  assert.ok(await volume.isInUse(from));
  assert.equal(await volume.attachedTo(), attachedTo(from), "it is attached until it is unstaged");
  assert.match(await podNow(to), new RegExp(` ${to.name}$`), "its successor waits on the other node");
  stops.unstage.release();

  await stops.stage.reached;
  assert.ok(from.driver.volumes.isIdle);
  assert.ok(!(await volume.isInUse(from)));
  assert.ok(await volume.isInUse(to));
  assert.equal(await volume.attachedTo(), attachedTo(to));
  stops.stage.release();

  await to.member.rolledOut("statefulset/db");
  console.log(`${from.name} to ${to.name}: ${Math.round(performance.now() - beganMs - 2 * temptingMs)} ms`);
  // Its container counts its start as its first work.
  await until("its data to have come along", async () => volume.starts === starts + 1);
  await kubectl.succeed("uncordon", from.name);
  noViolations(from, to);
}

/** podwright is killed, and the node is declared out of service: its pod and its volume go to the other node meanwhile. */
async function isLost(volume: Volume, lost: Place, other: Place): Promise<void> {
  const { kubectl } = other.member;
  const starts = volume.starts;
  lost.kubelet.child.kill("SIGKILL");
  await lost.kubelet.ended;
  await other.member.shows(new RegExp(`^${lost.name} +NotReady`, "m"), "get", "nodes");
  await kubectl.succeed("taint", "node", lost.name, "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute");
  const isThere = async (): Promise<boolean> => (await podNow(other)).endsWith(` ${other.name}`);
  await until("the pod to be on the other node", isThere, limitMs);
  await other.member.rolledOut("statefulset/db");
  await until("its data to have come along", async () => volume.starts === starts + 1);
  assert.equal(await volume.attachedTo(), attachedTo(other), "the lost node's was detached by force");
  assert.ok(lost.driver.volumes.isStaged(volume.handle), "nobody was there to unstage it");

  // Its pod is somebody else's by now: it is ended and its volume is released, without touching the other's.
  lost.kubelet = lost.member.start();
  await other.member.shows(new RegExp(`^${lost.name} +Ready`, "m"), "get", "nodes");
  await until("the lost node to release the volume", async () => lost.driver.volumes.isIdle, limitMs);
  await until("the lost node not to use it", async () => !(await volume.isInUse(lost)), limitMs);
  const left = async (): Promise<boolean> =>
    (await lost.member.node.podwright.pods()).every(({ name }) => !name.startsWith("db-"));
  await until("the lost node's pod to be gone", left);
  assert.equal(await volume.attachedTo(), attachedTo(other));
  await kubectl.succeed("taint", "node", lost.name, "node.kubernetes.io/out-of-service-");
  assert.ok((await podNow(other)).endsWith(` ${other.name}`));
  assert.ok(other.driver.volumes.isStaged(volume.handle));
  assert.equal(volume.starts, starts + 1);
  noViolations(lost, other);
}

function noViolations(...places: readonly Place[]): void {
  for (const { driver } of places) assert.deepEqual(driver.violations, []);
}

test(
  "a claim moves with its pod between nodes, in order, also from a node that is lost",
  { skip: noControlPlane || noKubectl },
  async () => {
    await withMembers("", ["node1", "node2"], async (members) => {
      using directory = testDirectory();
      await using cleanUps = new AsyncDisposableStack();
      const places: Place[] = [];
      for (const member of members) {
        const { name } = member.node;
        const root = member.node.podwright.layout.kubeletRoot;
        const driver = cleanUps.use(
          new CsiDriver({ root, directory: directory.join(name), volumes: directory.join("volumes"), nodeId: name }),
        );
        await driver.start();
        places.push({ member, driver, name, kubelet: member.start() });
        await member.shows(new RegExp(`^${name} +Ready`, "m"), "get", "nodes");
        const drivers = "jsonpath={.spec.drivers[*].name}";
        await member.shows(new RegExp(driver.name), "get", "csinode", name, "-o", drivers);
      }
      const [first, second] = places;
      assert.ok(first !== undefined && second !== undefined);
      await using _controllers = new CsiControllers(first.member.kubectl, first.driver.name);
      await first.member.kubectl.succeed("cordon", second.name);
      await deployWithClaims(first.member, first.driver.name, 1);
      await first.member.kubectl.succeed("uncordon", second.name);
      const volume = await Volume.of(first);
      await moves(volume, first, second);
      await isLost(volume, second, first);
      await moves(volume, first, second);
      for (const { kubelet } of places) {
        kubelet.child.kill("SIGTERM");
        await kubelet.ended;
      }
    });
  },
);
