import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { test } from "node:test";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import { Chromium, noChromium, type Page } from "../support/chromium.ts";
import type { RunningCommand } from "../support/command.ts";
import { withKubeletNode } from "../support/kubelet-node.ts";
import { type Podwright, withPodwright } from "../support/podwright.ts";

const markup = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';

const pods = `apiVersion: v1
kind: Secret
metadata: { name: account, namespace: tools }
stringData: { token: s3cr3t-of-nobody }
---
apiVersion: v1
kind: Pod
metadata: { name: hostile }
spec:
  restartPolicy: Never
  containers:
  - name: app
    image: ${DEMO_IMAGE}
    command: [sh, -c, 'printf "%s" "$MARKUP" > /dev/termination-log; exit 3']
    env: [{ name: MARKUP, value: '${markup}' }]
---
apiVersion: v1
kind: Pod
metadata: { name: probed, namespace: tools }
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: app
    image: ${DEMO_IMAGE}
    command: [sh, -c, "httpd -f -p 8090 -h /etc --token=s3cr3t-of-nobody || httpd -f -p 8090 -h /etc"]
    env: [{ name: TOKEN, valueFrom: { secretKeyRef: { name: account, key: token } } }]
    ports: [{ containerPort: 8090 }]
    resources: { requests: { cpu: 10m, memory: 16Mi }, limits: { memory: 64Mi } }
    readinessProbe: { httpGet: { port: 8090, path: "/passwd?token=s3cr3t-of-nobody" }, periodSeconds: 1 }
`;

async function serveUi(podwright: Podwright): Promise<{ readonly command: RunningCommand; readonly link: string }> {
  const command = podwright.start(["ui"]);
  await command.prints(/#code=[0-9a-f]{48}\n/);
  return { command, link: command.stdout.trim() };
}

const row = (name: string): string => {
  return `[...document.querySelectorAll("button.row")].find((row) => row.querySelector(".name").textContent === "${name}")`;
};

/** The page has no errors, and has sent requests only to its own server. */
function assertQuiet(page: Page, origin: string): void {
  assert.deepEqual(page.problems, []);
  assert.deepEqual(
    page.requests.filter((url) => !url.startsWith(origin)),
    [],
  );
}

test("the node page waits for an engine, shows pods as they come and go, and notices when podwright is gone", async (t) => {
  if (noChromium !== false) return t.skip(noChromium);
  await withPodwright(async (podwright) => {
    const { command, link } = await serveUi(podwright);
    const { origin } = new URL(link);
    await using chromium = await Chromium.start();
    const page = await chromium.open(link, { width: 1280, height: 900 });
    await page.waitFor("the notice that no engine runs", `document.body.innerText.includes("No engine runs for")`);
    assert.equal(await page.evaluate("location.href"), `${origin}/ui/`, "the code stays in no address");

    await podwright.succeed("run", "--detach", "--wait", "none", await podwright.manifest("pods.yaml", pods));
    await page.waitFor(
      "both pods",
      `${row("probed")}?.innerText.includes("Running") && ${row("hostile")}?.innerText.includes("Error")`,
    );
    await page.waitFor("the connection", `document.querySelector(".link").textContent === "live"`);

    await page.evaluate(`${row("probed")}.focus()`);
    await page.press("Enter");
    await page.waitFor(
      "the timeline",
      `document.querySelector(".timeline")?.innerText.includes("the pod has no sandbox")`,
    );
    await page.waitFor("the probe", `document.querySelector(".probe .last")?.innerText.startsWith("last passed")`);
    const details = await page.evaluate<string>(`document.querySelector(".details").innerText`);
    for (const part of [
      "GET :8090/passwd, every 1.0 s",
      "8090/TCP",
      "memory 16Mi ≤ 64Mi",
      "Burstable",
      "ContainersReady",
    ]) {
      assert.ok(details.includes(part), `${part} is not in:\n${details}`);
    }
    assert.doesNotMatch(await page.evaluate<string>("document.documentElement.outerHTML"), /s3cr3t/);

    await page.waitFor("the gauges", `document.querySelectorAll(".gauge .meter").length === 4`);
    await page.waitFor("the pod's memory", `/ [KM]iB/.test(${row("probed")}.querySelector(".memory").innerText)`);
    await page.waitFor("the pod's processor time", `/0\\.\\d/.test(${row("probed")}.querySelector(".cpu").innerText)`);

    await page.press("ArrowDown");
    await page.evaluate(`${row("hostile")}.click()`);
    await page.waitFor("the termination message", `document.querySelector(".details").innerText.includes("onerror")`);
    assert.equal(
      await page.evaluate("document.querySelectorAll('img, script:not([src])').length + (window.hacked ?? 0)"),
      0,
    );

    await page.evaluate(`document.querySelector('[data-mood="trouble"]').click()`);
    await page.waitFor("one pod to be left", "document.querySelectorAll('.pod').length === 1");
    await page.evaluate(`document.activeElement.blur()`);
    await page.press("/");
    await page.send("Input.insertText", { text: "no such pod" });
    await page.waitFor("the filter to leave nothing", `document.body.innerText.includes("None of the 2 pods matches")`);
    await page.press("Escape");
    await page.waitFor("all pods to be back", "document.querySelectorAll('.pod').length === 2");
    await page.evaluate(`document.querySelector('[data-key="garbage"] summary').click()`);
    await page.waitFor(
      "the preview of garbage collection",
      `document.querySelector('[data-key="garbage"]').innerText.includes("in use")`,
    );
    await page.evaluate(`document.querySelector('[data-key="evictions"] summary').click()`);
    await page.waitFor(
      "the preview of evictions",
      `document.querySelector('[data-key="evictions"]').innerText.includes("tools/probed")`,
    );
    await assertFitsPhone(page);

    await podwright.succeed("stop", "probed");
    await page.waitFor("the pod to go", `${row("probed")} === undefined`);
    await podwright.succeed("stop", "hostile");
    await page.waitFor(
      "the page to notice that podwright has ended",
      `document.querySelector(".link").textContent === "reconnecting"`,
    );
    assertQuiet(page, origin);

    const other = await chromium.open(link, { width: 360, height: 640, dark: true });
    await other.waitFor("the refusal of a link that was used", `document.body.innerText.includes("works once")`);
    command.child.kill("SIGINT");
    assert.equal((await command.ended).exitCode, 0);
  });
});

/** With everything unfolded there is nothing to be scrolled sideways, nor is anything cut off. */
async function assertFitsPhone(page: Page): Promise<void> {
  await page.resize(360, 640);
  await page.evaluate(`document.querySelectorAll("button.row[aria-expanded=false]").forEach((row) => row.click())`);
  await page.waitFor("both timelines", "document.querySelectorAll('.timeline li').length > 4");
  const beyond = await page.evaluate<string[]>(
    `[...document.querySelectorAll("body *")].filter((each) => each.getBoundingClientRect().right > 361).map((each) => each.outerHTML.slice(0, 90))`,
  );
  assert.deepEqual(beyond, []);
  assert.equal(await page.evaluate("document.documentElement.scrollWidth"), 360);
  await page.resize(1280, 900);
}

test("the kubelet serves the page only if enabled, and only to clients with full access to the node", async () => {
  await withKubeletNode(async (node) => {
    const { podwright } = node;
    await podwright.manifest("tokens", "t0ken-of-bob,bob,1\n");
    await node.startContainerd();
    const flags = ["--token-auth-file", podwright.path("tokens")];
    const kubelet = node.startKubelet(...flags, "--node-page");
    await kubelet.prints(/serving the kubelet API/);
    const ask = async (path: string, headers: Record<string, string>): Promise<IncomingMessage> => {
      const ca = await readFile(podwright.path("pki/kubelet.crt"));
      const to = { host: "127.0.0.1", port: node.apiPort, servername: "node1", ca, path, headers, agent: false };
      const outgoing = request(to);
      outgoing.end();
      return ((await once(outgoing, "response")) as [IncomingMessage])[0].setEncoding("utf8");
    };
    const bob = { Authorization: "Bearer t0ken-of-bob" };
    for (const path of ["/ui/", "/ui/main.js", "/ui/api/events"]) {
      assert.equal((await ask(path, {})).statusCode, 401, path);
    }
    const page = await ask("/ui/", bob);
    assert.match(String(page.headers["content-security-policy"]), /default-src 'none'/);
    assert.match(await textOf(page), /<!doctype html>/);
    const events = await ask("/ui/api/events", bob);
    assert.equal(events.headers["content-type"], "text/event-stream");
    const [first] = (await once(events, "data")) as [string];
    assert.match(first, /^event: hello\ndata: \{"now":\d+,"node":\{"name":"node1",/);
    events.destroy();
    kubelet.child.kill("SIGTERM");
    await kubelet.ended;

    const without = node.startKubelet(...flags);
    await without.prints(/serving the kubelet API/);
    assert.equal((await ask("/ui/", bob)).statusCode, 404);
    without.child.kill("SIGTERM");
    await without.ended;
    await node.expectNothingLeft();
  });
});

async function textOf(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of response) text += String(piece);
  return text;
}
