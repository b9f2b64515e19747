/**
 * Draws a recorded terminal session as SVG, for the README:
 *
 * script -qec 'COMMANDS' session.txt; terminal-svg.ts session.txt docs/images/run.svg
 *
 * Supports only the colours and line redrawing of podwright's own output.
 */
import { readFile, writeFile } from "node:fs/promises";

const charWidth = 8.7;
const lineHeight = 19;
const padding = 16;

/** Classes by their "select graphic rendition" code. */
const styles: Readonly<Record<string, string>> = { 1: "b", 2: "f", 31: "r", 32: "g", 33: "y", 36: "c" };

const sheet = `
  text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d6dbe1; white-space: pre }
  .b { font-weight: bold } .f { fill: #8b949e } .r { fill: #ff8f86 } .g { fill: #7ee08a } .y { fill: #f0c765 } .c { fill: #79d3e6 }`;

const escapeXml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** The final lines on the screen: "one line up, erase" removes redrawn ones. */
function screenLines(session: string): string[] {
  const lines: string[] = [];
  const text = session.replaceAll(/^Script (?:started|done) .*$/gm, "").replaceAll(/\u001B\[\?25[lh]/g, "");
  for (const raw of text.split("\n")) {
    const parts = raw.replaceAll("\r", "").split("\u001B[1A\u001B[0J");
    for (let erased = 1; erased < parts.length; erased++) lines.pop();
    lines.push(parts.at(-1) ?? "");
  }
  // A line starts without a style: one that is set at the end of the line before moves to the line that it is for.
  return lines
    .join("\n")
    .trim()
    .replaceAll(/(\u001B\[\d+m)\n/g, "\n$1")
    .split("\n");
}

function styledLine(line: string): string {
  const spans = line.split(/\u001B\[(\d+)m/);
  let style: string | undefined;
  return spans
    .map((part, index) => {
      if (index % 2 === 1) style = styles[part];
      else if (part !== "") return `<tspan${style === undefined ? "" : ` class="${style}"`}>${escapeXml(part)}</tspan>`;
      return "";
    })
    .join("");
}

const [input, output] = process.argv.slice(2);
if (input === undefined || output === undefined) throw new Error("usage: terminal-svg.ts SESSION OUTPUT");
const lines = screenLines(await readFile(input, "utf8"));
const columns = Math.max(...lines.map((line) => line.replaceAll(/\u001B\[\d+m/g, "").length));
const width = Math.ceil(columns * charWidth) + 2 * padding;
const height = lines.length * lineHeight + 2 * padding;
const rows = lines.map(
  (line, index) =>
    `<text x="${padding}" y="${padding + 14 + index * lineHeight}" xml:space="preserve">${styledLine(line)}</text>`,
);
const svg = [
  `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img"`,
  `  aria-label="A terminal session of podwright">`,
  `<style>${sheet}\n</style>`,
  `<rect width="100%" height="100%" rx="8" fill="#161b22"/>`,
  ...rows,
  "</svg>\n",
];
await writeFile(output, svg.join("\n"));
