import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test, type TestContext } from "node:test";
import { politeSleep } from "../support/manifests.ts";
import { type Podwright, until, withPodwright } from "../support/podwright.ts";
import { foundRuntimes, type TestRuntime } from "../support/runtimes.ts";

const image = "podwright.local/demo:1";

/** A pod that shows what it sees of the demo image, mounted as a volume. */
function podManifest(name: string, mount: string): string {
  return `
apiVersion: v1
kind: Pod
metadata: {name: ${name}}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - name: app
    image: ${image}
    command:
    - sh
    - -c
    - |
      echo "files: $(find /tools -name busybox)"
      touch /tools/x 2>/dev/null && echo WRITABLE
      echo done
      ${politeSleep}
    volumeMounts:
    - ${mount}
  volumes:
  - {name: tools, image: {reference: "${image}", pullPolicy: IfNotPresent}}
  - {name: unused, image: {reference: "registry.invalid/nothing:1"}}
`;
}

async function start(podwright: Podwright, name: string, mount: string): Promise<void> {
  const path = await podwright.manifest(`${name}.yaml`, podManifest(name, mount));
  await podwright.succeed("run", "--detach", "--wait", "none", path);
}

/** What the container has printed, or why it does not run. */
async function seen(podwright: Podwright, name: string): Promise<string> {
  let text = "";
  const isOver = async (): Promise<boolean> => {
    const [container] = (await podwright.pod(name)).containers;
    const log = await readFile(container?.logPath ?? "", "utf8").catch(() => "");
    text = /^(?:CreateContainer|ErrImage|ImagePull)/u.test(container?.reason ?? "") ? (container?.message ?? "") : log;
    return /done|support/.test(text);
  };
  await until(() => `${name} to run, or to say why not: ${text}`, isOver, 60_000);
  return text;
}

/** The runtime's version as one number: `2.1.9` is 2.01. */
function versionOf({ version }: TestRuntime): number {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major + minor / 100;
}

/** The first that mounts images. */
const firstWithImages = 2.01;
const older = foundRuntimes().filter((runtime) => versionOf(runtime) < firstWithImages);

function skip(t: TestContext, { version }: TestRuntime): void {
  t.skip(`containerd ${version} mounts no images`);
}

test("a container sees the files of an image, read-only, also after a kill of podwright; an unused volume is not pulled", async (t) => {
  await withPodwright(async (podwright) => {
    if (versionOf(podwright.runtime) < firstWithImages) return skip(t, podwright.runtime);
    await start(podwright, "whole", "{name: tools, mountPath: /tools}");
    const text = await seen(podwright, "whole");
    assert.match(text, /files: \S*\/tools\/\S*busybox/);
    assert.doesNotMatch(text, /WRITABLE/);
    const { containers } = await podwright.pod("whole");

    await podwright.kill(await podwright.enginePid());
    await start(podwright, "again", "{name: tools, mountPath: /tools}");
    assert.match(await seen(podwright, "again"), /files: \S*\/tools\/\S*busybox/);
    const ids = containers.map(({ id }) => id);
    assert.deepEqual(
      (await podwright.pod("whole")).containers.map(({ id }) => id),
      ids,
    );
    const timeline = await podwright.succeed("timeline", "whole");
    assert.doesNotMatch(timeline, /registry\.invalid/);
  });
});

test("a subPath in an image is mounted, or the container waits if the runtime would mount the whole image", async (t) => {
  await withPodwright(async (podwright) => {
    if (versionOf(podwright.runtime) < firstWithImages) return skip(t, podwright.runtime);
    await start(podwright, "part", "{name: tools, mountPath: /tools, subPath: bin}");
    const text = await seen(podwright, "part");
    if (versionOf(podwright.runtime) < 2.02) {
      assert.match(text, /the container runtime does not support a subPath of an image volume/);
    } else assert.match(text, /files: \/tools\/busybox/);
  });
});

const noOlder =
  older.length === 0 && "every containerd here mounts images: sh scripts/fetch-runtimes.sh fetches others";
test(
  "a runtime that mounts no images is named, and the container does not run without its volume",
  {
    skip: noOlder,
  },
  async () => {
    for (const runtime of older) {
      await withPodwright(async (podwright) => {
        await start(podwright, "whole", "{name: tools, mountPath: /tools}");
        assert.match(await seen(podwright, "whole"), /the container runtime does not support image volumes/);
      }, runtime);
    }
  },
);
