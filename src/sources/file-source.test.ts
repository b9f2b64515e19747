import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { podYaml, SourceHarness } from "../../test/support/sources.ts";
import { MemoryFiles } from "../sim/files.ts";
import { FileSource } from "./file-source.ts";

const problemsOf = ({ rejected }: Pick<FileSource, "rejected">): string[] => rejected.map(({ message }) => message);

const directory = "/etc/manifests";
const periodMs = 20_000;

class Fixture extends SourceHarness {
  readonly files = new MemoryFiles(this.clock);
  readonly source = new FileSource(this, { path: directory, periodMs });

  async write(name: string, text: string | Uint8Array): Promise<void> {
    await this.files.makeDirectory(directory, 0o755);
    await this.files.write(`${directory}/${name}`, text, 0o600);
  }
}

test("the files of a directory are read in order, without hidden files and subdirectories", async () => {
  const fixture = new Fixture();
  await fixture.write("b.yaml", podYaml("two"));
  await fixture.write("a.yaml", `${podYaml("one")}---\n${podYaml("more")}`);
  await fixture.write(".hidden.yaml", podYaml("hidden"));
  await fixture.files.makeDirectory(`${directory}/sub`, 0o755);
  await fixture.files.write(`${directory}/sub/c.yaml`, podYaml("below"), 0o600);
  await fixture.files.symlink("/elsewhere.yaml", `${directory}/link.yaml`);
  await fixture.files.write("/elsewhere.yaml", podYaml("linked"), 0o600);
  await fixture.source.refresh();
  assert.deepEqual(fixture.pods, [
    "one-node1 busybox",
    "more-node1 busybox",
    "two-node1 busybox",
    "linked-node1 busybox",
  ]);
  assert.deepEqual(problemsOf(fixture.source), [
    `${directory}/sub: is a directory; only the files of manifests are read`,
  ]);
});

test("a single file is read too, and a path that does not exist yet means no pods", async () => {
  const fixture = new Fixture();
  const source = new FileSource(fixture, { path: `${directory}/a.yaml`, periodMs });
  await source.refresh();
  assert.deepEqual(fixture.delivered, [{ pods: [], complete: true }]);
  await fixture.write("a.yaml", podYaml("one"));
  await source.refresh();
  assert.deepEqual(fixture.pods, ["one-node1 busybox"]);
  assert.deepEqual(problemsOf(source), []);
});

test("a removed file removes its pod, and without changes nothing is delivered", async () => {
  const fixture = new Fixture();
  await fixture.write("a.yaml", podYaml("one"));
  await fixture.source.refresh();
  await fixture.source.refresh();
  assert.equal(fixture.delivered.length, 1);
  await fixture.files.remove(`${directory}/a.yaml`);
  await fixture.source.refresh();
  assert.deepEqual(fixture.pods, []);
});

test("of 100 manifests the 95 valid ones run, and each of the 5 broken ones is reported once", async () => {
  const fixture = new Fixture();
  for (let index = 0; index < 100; index++) {
    const name = `p${String(index).padStart(2, "0")}`;
    await fixture.write(`${name}.yaml`, index % 20 === 7 ? `${podYaml(name)}  oops: [\n` : podYaml(name));
  }
  await fixture.source.refresh();
  await fixture.source.refresh();
  assert.equal(fixture.pods?.length, 95);
  const messages = fixture.journal.messages("ManifestRejected");
  assert.equal(messages.length, 5);
  assert.match(messages[0] ?? "", /^\/etc\/manifests\/p07\.yaml:\d+:\d+: invalid YAML/u);
});

test("a file that becomes invalid keeps its pod, and a valid version replaces it", async () => {
  const fixture = new Fixture();
  await fixture.write("a.yaml", podYaml("one"));
  await fixture.source.refresh();
  for (const bad of ["apiVersion: v1\nkind: Pod\nmeta", podYaml("one", "a b"), new Uint8Array(11 * 1024 * 1024)]) {
    await fixture.write("a.yaml", bad);
    await fixture.source.refresh();
    assert.deepEqual(fixture.pods, ["one-node1 busybox"]);
    assert.equal(fixture.source.rejected.length, 1);
  }
  await fixture.write("a.yaml", podYaml("one", "alpine"));
  await fixture.source.refresh();
  assert.deepEqual(fixture.pods, ["one-node1 alpine"]);
  assert.deepEqual(problemsOf(fixture.source), []);
  assert.deepEqual(fixture.journal.messages("ManifestMended"), [`${directory}/a.yaml is valid again`]);
});

test("a briefly empty file keeps its pods", async () => {
  const fixture = new Fixture();
  const controller = new AbortController();
  await fixture.write("a.yaml", podYaml("one"));
  const running = fixture.source.run(controller.signal);
  await fixture.clock.advance(1);
  for (const empty of ["", " \n\t\n", "# a comment\n---\n"]) {
    await fixture.write("a.yaml", empty);
    await fixture.clock.advance(1);
    assert.deepEqual(fixture.pods, ["one-node1 busybox"], JSON.stringify(empty));
    assert.deepEqual(problemsOf(fixture.source), [
      `${directory}/a.yaml: is empty; its pods keep running; remove the file to stop them`,
    ]);
  }
  assert.equal(fixture.journal.messages("ManifestRejected").length, 1);
  await fixture.write("a.yaml", podYaml("one"));
  await fixture.clock.advance(1);
  assert.deepEqual([fixture.pods, problemsOf(fixture.source)], [["one-node1 busybox"], []]);
  await fixture.write("a.yaml", "apiVersion: v1\nkind: List\nitems: []\n");
  await fixture.clock.advance(1);
  assert.deepEqual([fixture.pods, problemsOf(fixture.source)], [[], []], "a list of nothing is a wish");
  controller.abort();
  await running;
});

test("a file that keeps pods without defining them is soon reread, whatever inotify reports", async () => {
  const fixture = new Fixture();
  const controller = new AbortController();
  await fixture.files.makeDirectory(directory, 0o755);
  await fixture.files.symlink("/elsewhere.yaml", `${directory}/link.yaml`);
  await fixture.files.write("/elsewhere.yaml", podYaml("one"), 0o600);
  const running = fixture.source.run(controller.signal);
  await fixture.clock.advance(1);
  await fixture.files.write("/elsewhere.yaml", "", 0o600);
  await fixture.clock.advance(periodMs);
  assert.equal(fixture.source.rejected.length, 1);
  await fixture.files.write("/elsewhere.yaml", podYaml("one", "alpine"), 0o600);
  await fixture.clock.advance(1000);
  assert.deepEqual([fixture.pods, problemsOf(fixture.source)], [["one-node1 alpine"], []]);
  controller.abort();
  await running;
});

test("an empty file that never had a pod is not reported", async () => {
  const fixture = new Fixture();
  await fixture.write("a.yaml", "# later\n");
  await fixture.source.refresh();
  assert.deepEqual([fixture.pods, problemsOf(fixture.source)], [[], []]);
});

test("problems of a manifest are reported with its name, whatever they are", async () => {
  const fixture = new Fixture();
  await fixture.write("a.yaml", podYaml("invalid").replace("image:", "imagePullPolicy: Sometimes\n    image:"));
  await fixture.write("b.yaml", `${podYaml("mistyped")}  hostNetwork: 7\n`);
  await fixture.write("c.yaml", `kind: PodList\napiVersion: v1\nitems:\n- metadata: {name: listed}\n  spec: 7\n`);
  await fixture.write("d.yaml", "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: foreign}\n");
  await fixture.write("e.yaml", "metadata: {name: torn");
  await fixture.write("f.yaml", `${podYaml("static")}  serviceAccountName: s\n`);
  await fixture.source.refresh();
  const told = fixture.source.rejected.map(({ place, object }) => [place.slice(-6), object]);
  assert.deepEqual(
    [...new Map(told.map(([place, object]) => [place, object]))],
    [
      ["a.yaml", "invalid"],
      ["b.yaml", "mistyped"],
      ["c.yaml", "listed"],
      ["d.yaml", "foreign"],
      ["e.yaml", undefined],
      ["f.yaml", "static"],
    ],
  );
});

test("static manifests contain only pods, and none that needs the API", async () => {
  const fixture = new Fixture();
  await fixture.write("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n");
  await fixture.write("b.yaml", `${podYaml("one")}  serviceAccountName: s\n`);
  await fixture.source.refresh();
  assert.deepEqual(fixture.pods, []);
  assert.deepEqual(problemsOf(fixture.source), [
    `${directory}/a.yaml:2:1: kind: Forbidden: static manifests hold pods only, not a ConfigMap`,
    `${directory}/b.yaml:9:3: spec.serviceAccountName: Forbidden: static pods may not reference serviceaccounts`,
  ]);
});

test("changes are seen at once with inotify, and periodically if it fails", async () => {
  const fixture = new Fixture();
  const controller = new AbortController();
  const running = fixture.source.run(controller.signal);
  await fixture.clock.advance(1);
  assert.deepEqual(fixture.pods, []);
  // The directory does not exist, so it can't be watched: the periodic look finds it.
  await fixture.write("a.yaml", podYaml("one"));
  await fixture.clock.advance(1);
  assert.deepEqual(fixture.pods, []);
  await fixture.clock.advance(periodMs);
  assert.deepEqual(fixture.pods, ["one-node1 busybox"]);
  await fixture.write("b.yaml", podYaml("two"));
  await fixture.clock.advance(1);
  assert.deepEqual(fixture.pods, ["one-node1 busybox", "two-node1 busybox"]);
  controller.abort();
  await running;
  assert.deepEqual(fixture.clock.waits, []);
});

describe("a name that is removed and returns at once", () => {
  /** Two pods run, then something is done within one burst; what was delivered since. */
  async function delivered(deed: (fixture: Fixture) => Promise<void>): Promise<readonly (readonly string[])[]> {
    const fixture = new Fixture();
    const controller = new AbortController();
    await fixture.write("a.yaml", podYaml("one"));
    await fixture.write("b.yaml", podYaml("two"));
    const running = fixture.source.run(controller.signal);
    await fixture.clock.advance(1);
    const before = fixture.delivered.length;
    await deed(fixture);
    await fixture.clock.advance(100);
    controller.abort();
    await running;
    return fixture.delivered.slice(before).map(({ pods }) => pods.map(({ pod }) => pod.metadata.name));
  }
  const [a, b] = ["one-node1", "two-node1"];
  const path = `${directory}/a.yaml`;

  test("restarts its pods: they are removed, and added again", async () => {
    const rewritten = await delivered(async ({ files }) => {
      await files.remove(path);
      await files.write(path, podYaml("one"), 0o600);
    });
    assert.deepEqual(rewritten, [[b], [a, b]]);
    const moved = await delivered(async ({ files }) => {
      await files.rename(path, "/etc/a.yaml");
      await files.rename("/etc/a.yaml", path);
    });
    assert.deepEqual(moved, [[b], [a, b]]);
  });

  test("and is removed again removes its pods", async () => {
    const gone = await delivered(async ({ files }) => {
      await files.remove(path);
      await files.write(path, podYaml("one"), 0o600);
      await files.remove(path);
    });
    assert.deepEqual(gone, [[b]]);
  });

  test("with other content starts that, and stops the old pods, even if it is invalid", async () => {
    const other = await delivered(async ({ files }) => {
      await files.remove(path);
      await files.write(path, podYaml("three"), 0o600);
    });
    assert.deepEqual(other, [[b], ["three-node1", b]]);
    const bad = await delivered(async ({ files }) => {
      await files.remove(path);
      await files.write(path, "kind: [", 0o600);
    });
    assert.deepEqual(bad.at(-1), [b]);
  });

  test("differs from one that another file is moved onto, overwritten, or hidden", async () => {
    const same = await delivered(async ({ files }) => {
      await files.write("/etc/new", podYaml("one"), 0o600);
      await files.rename("/etc/new", path);
      await files.write(path, podYaml("one"), 0o600);
      await files.write(`${directory}/.a.yaml.swp`, "", 0o600);
      await files.remove(`${directory}/.a.yaml.swp`);
    });
    assert.deepEqual(same, []);
    const changed = await delivered(async ({ files }) => {
      await files.write("/etc/new", podYaml("one", "alpine"), 0o600);
      await files.rename("/etc/new", path);
    });
    assert.deepEqual(changed, [[a, b]]);
  });

  test("is handled for a path of one file, too, and for a link", async () => {
    const fixture = new Fixture();
    const controller = new AbortController();
    await fixture.write("real.yaml", podYaml("one"));
    await fixture.files.symlink(`${directory}/real.yaml`, "/etc/link.yaml");
    const source = new FileSource(fixture, { path: "/etc/link.yaml", periodMs });
    const running = source.run(controller.signal);
    await fixture.clock.advance(1);
    await fixture.files.remove(`${directory}/real.yaml`);
    await fixture.write("real.yaml", podYaml("one"));
    await fixture.clock.advance(100);
    controller.abort();
    await running;
    assert.deepEqual(
      fixture.delivered.map(({ pods }) => pods.length),
      [1, 0, 1],
    );
  });

  test("was never there for pods that it did not give", async () => {
    const fixture = new Fixture();
    const controller = new AbortController();
    await fixture.write("a.yaml", "kind: [");
    const running = fixture.source.run(controller.signal);
    await fixture.clock.advance(1);
    await fixture.files.remove(path);
    await fixture.write("a.yaml", podYaml("one"));
    await fixture.clock.advance(100);
    controller.abort();
    await running;
    assert.deepEqual(
      fixture.delivered.map(({ pods }) => pods.length),
      [0, 1],
    );
  });
});
