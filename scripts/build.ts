/**
 * Bundles src/cli/main.ts into dist/podwright.js, with rarely used code in lazily loaded chunks, and compiles it once.
 *
 * build.ts [DIRECTORY] output directory (default: dist)
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { promisify } from "node:util";
import { build, type Metafile, type OutputFile, type Plugin } from "esbuild";
import { bundledPackages } from "./bundled-packages.ts";
import { bundleTarget } from "./bundle-target.ts";
import { compileCacheName, fileListName, nodeFlags, packageListName } from "./launch.ts";

const root = dirname(import.meta.dirname);
const outputDirectory = resolve(root, process.argv[2] ?? "dist");
const entryName = "podwright.js";
const warmUpName = "warm-up.js";

// Dependencies written as CommonJS call require() for Node.js's own modules, which an ES module does not have.
const banner = `import { createRequire as __createRequire } from "node:module";
const require = __createRequire(import.meta.url);`;

/** The commit of the working tree, with `-dirty` when it differs; undefined outside a git checkout. */
async function gitCommit(): Promise<string | undefined> {
  try {
    const describe = ["describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"];
    const { stdout } = await promisify(execFile)("git", describe, { cwd: root });
    return stdout.trim();
  } catch {
    return undefined;
  }
}

/** The node page's files, by name: `web/` with its modules bundled into one script. */
async function pageFiles(): Promise<Record<string, string>> {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: ["web/main.ts", "web/style.css"],
    outdir: "web",
    bundle: true,
    format: "esm",
    target: "es2022",
    minify: true,
    write: false,
    logLevel: "warning",
  });
  const texts = outputFiles.map(({ path, text }) => [basename(path), text] as const);
  const copied = ["index.html", "icon.svg"].map(async (name) => {
    return [name, await readFile(join(root, "web", name), "utf8")] as const;
  });
  return Object.fromEntries([...texts, ...(await Promise.all(copied))]);
}

/** Replaces a file atomically, for a podwright that starts meanwhile. */
async function replaceFile(path: string, contents: Uint8Array): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`;
  await writeFile(temporary, contents);
  await rename(temporary, path);
}

/**
 * In a chunk, esbuild gives `await import("x")` of a CommonJS package no named exports, unlike Node.js: code that works
 * from the sources would fail from the bundle.
 */
function refuseLazyCommonJs({ inputs }: Metafile): void {
  for (const [importer, input] of Object.entries(inputs)) {
    if (importer.startsWith("node_modules/")) continue;
    for (const { kind, path } of input.imports) {
      if (kind === "dynamic-import" && inputs[path]?.format === "cjs") {
        throw new Error(
          `${importer} imports ${path} lazily, which is CommonJS and would lose its named exports in the bundle: ` +
            "import it at the top of a module of ours, and that one lazily",
        );
      }
    }
  }
}

/**
 * The entry point. V8's code cache is stored beside the modules: Node.js uses it only with the same version and V8
 * flags, and compiles otherwise. The directory may be moved.
 *
 * Small buffers are pieces of larger ones. Of those, Node.js 26 makes 64 KiB each, and a dozen are kept for a few bytes:
 * constants of its modules, the last message of a watch.
 */
const entry = `import { enableCompileCache } from "node:module";
Buffer.poolSize = 8 * 1024;
const directory = import.meta.dirname + "/${compileCacheName}";
try {
  enableCompileCache({ directory, portable: true });
} catch {
  enableCompileCache(directory); // Node.js before 25.0
}
await import("./main.js");
`;

/**
 * Loads these modules of Node.js by require(). An import statement evaluates every export, some of which load much:
 * node:http a whole HTTP client (undici) for its WebSocket, a tenth of a second and 5 MiB that nothing here uses.
 */
const leanBuiltins: Plugin = {
  name: "lean-builtins",
  setup(bundling) {
    bundling.onResolve({ filter: /^node:(http|process|util)$/ }, ({ path }) => ({ path, namespace: "builtin" }));
    bundling.onLoad({ filter: /.*/, namespace: "builtin" }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)});`,
    }));
  },
};

async function bundle(): Promise<{ readonly outputFiles: OutputFile[]; readonly metafile: Metafile }> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: {
      main: "src/cli/main.ts",
      // Not by its name alone in the sources: a thread loads it.
      "group-worker": "src/linux/files/group-worker.ts",
      // A process is.
      "storage-helper": "src/linux/files/storage-helper.ts",
      "warm-up": "scripts/warm-up.ts",
    },
    outdir: outputDirectory,
    chunkNames: "chunk-[hash]",
    bundle: true,
    splitting: true,
    format: "esm",
    ...bundleTarget,
    // Stack traces show source positions; including the sources would triple the maps.
    sourcemap: "linked",
    sourcesContent: false,
    // The text stays in memory, in twice the size if one character is not Latin-1, as in comments.
    minifyWhitespace: true,
    lineLimit: 160,
    legalComments: "linked",
    define: {
      PODWRIGHT_COMMIT: JSON.stringify(await gitCommit()) ?? "undefined",
      PODWRIGHT_PAGE: JSON.stringify(await pageFiles()),
    },
    banner: { js: banner },
    plugins: [leanBuiltins],
    write: false,
    metafile: true,
    logLevel: "warning",
  });
  refuseLazyCommonJs(metafile);
  return { outputFiles, metafile };
}

/**
 * Installs the files and removes those of earlier builds, except the last: a running podwright may still load some of
 * its files.
 */
async function install(outputFiles: readonly OutputFile[], metafile: Metafile): Promise<void> {
  await mkdir(outputDirectory, { recursive: true });
  const listed = join(outputDirectory, fileListName);
  const before = (await readFile(listed, "utf8").catch(() => "")).split("\n");
  for (const file of outputFiles) await replaceFile(file.path, file.contents);
  const packages = await bundledPackages(root, metafile);
  await replaceFile(join(outputDirectory, packageListName), Buffer.from(`${JSON.stringify(packages, undefined, 2)}\n`));
  // The entry comes last: it implies the rest.
  await replaceFile(join(outputDirectory, entryName), Buffer.from(entry));
  const current = [entryName, fileListName, packageListName, ...outputFiles.map((file) => basename(file.path))];
  await replaceFile(listed, Buffer.from(current.join("\n")));
  const kept = new Set([...current, ...before]);
  for (const name of await readdir(outputDirectory)) {
    if (!kept.has(name)) await rm(join(outputDirectory, name), { recursive: true });
  }
}

/** How often the cache is filled at most until the same comes out twice. */
const fillings = 6;

/**
 * Fills V8's code cache with what the commands load: the same bytes each time and in each directory. Strings are hashed with
 * a seed of random numbers, and each file of the cache has its module's URL, which so is the same everywhere. On a busy
 * machine a collection may come at another moment and drop functions: what comes out twice in a row is taken.
 */
async function fillCompileCache(): Promise<void> {
  const warmUp = join(outputDirectory, warmUpName);
  const unfinished = `${compileCacheName}.${process.pid}.tmp`;
  let [last, filled] = ["", await fillOnce(unfinished)];
  for (let round = 1; filled !== last && round < fillings; round++) {
    [last, filled] = [filled, await fillOnce(unfinished)];
  }
  if (filled !== last) {
    console.warn(`the code cache came out differently ${fillings} times: the build is not reproducible`);
  }
  await rm(warmUp);
  await rm(`${warmUp}.map`, { force: true });
  // A podwright that runs from here may have added to the one of the last build.
  await rm(join(outputDirectory, compileCacheName), { recursive: true, force: true });
  await rename(join(outputDirectory, unfinished), join(outputDirectory, compileCacheName));
  await listCompileCache();
}

/** Fills the directory anew; the digest of its files. */
async function fillOnce(directory: string): Promise<string> {
  const here = "/proc/self/cwd";
  const path = join(outputDirectory, directory);
  await rm(path, { recursive: true, force: true });
  const cache = { NODE_COMPILE_CACHE: join(here, directory), NODE_COMPILE_CACHE_PORTABLE: "1" };
  const flags = ["--random-seed=1", "--preserve-symlinks", "--preserve-symlinks-main", ...nodeFlags];
  const words = [join(here, warmUpName), join(root, "examples/hello.yaml")];
  await promisify(execFile)(process.execPath, [...flags, ...words], {
    cwd: outputDirectory,
    env: { ...process.env, ...cache },
  });
  const digest = createHash("sha256");
  const files = (await readdir(path, { recursive: true, withFileTypes: true })).filter((found) => found.isFile());
  for (const { parentPath, name } of files.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    digest.update(`${name}\0`).update(await readFile(join(parentPath, name)));
  }
  return digest.digest("hex");
}

/** What later processes add to the cache is no part of the build. */
async function listCompileCache(): Promise<void> {
  const listed = join(outputDirectory, fileListName);
  const entries = await readdir(join(outputDirectory, compileCacheName), { recursive: true });
  const names = entries.toSorted().map((name) => join(compileCacheName, name));
  await replaceFile(listed, Buffer.from([await readFile(listed, "utf8"), compileCacheName, ...names].join("\n")));
}

const started = performance.now();
try {
  const { outputFiles, metafile } = await bundle();
  await install(outputFiles, metafile);
  await fillCompileCache();
  const code = outputFiles.filter((file) => file.path.endsWith(".js"));
  const kibibytes = code.reduce((sum, file) => sum + file.contents.length, 0) / 1024;
  const seconds = (performance.now() - started) / 1000;
  const shown = relative(root, join(outputDirectory, entryName));
  console.log(`${shown}: ${kibibytes.toFixed(0)} KiB in ${code.length} files, ${seconds.toFixed(1)} s`);
} catch (error) {
  // esbuild has already shown the positions.
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
