/**
 * Takes screenshots of the node page, light and dark, for the README:
 *
 * podwright ui prints the LINK
 * page-picture.ts LINK NAMESPACE/POD MINUTES docs/images
 *
 * The page stays open for this many minutes first, to give its gauges a history; then the pod is expanded.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Chromium } from "../test/support/chromium.ts";
import { sleep } from "../test/support/podwright.ts";

const [link, pod, minutes, directory] = process.argv.slice(2);
if (link === undefined || pod === undefined || minutes === undefined || directory === undefined) {
  throw new Error("usage: page-picture.ts LINK NAMESPACE/POD MINUTES DIRECTORY");
}
await using chromium = await Chromium.start();
const view = { width: 1200, height: 880, scale: 1.5 };
const page = await chromium.open(link, view);
await page.waitFor("the page", `document.querySelector(".link").textContent === "live"`);
await sleep(Number(minutes) * 60_000);
await page.evaluate(`location.hash = ${JSON.stringify(`#${pod}`)}`);
await page.waitFor("the timeline", "document.querySelector('.timeline li')");
for (const scheme of ["light", "dark"]) {
  await page.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
  await sleep(500);
  await writeFile(join(directory, `ui-${scheme}.png`), await page.screenshot());
}
