import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { until } from "./podwright.ts";

const program = "/usr/bin/chromium";
const answerLimitMs = 30_000;

/** The reason to skip without a browser. */
export const noChromium: string | false = existsSync(program)
  ? false
  : "chromium is not installed: scripts/setup.sh --test installs it on Debian";

interface Message {
  readonly id?: number;
  readonly sessionId?: string;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly message: string };
}

type Listener = (method: string, params: Readonly<Record<string, unknown>>) => void;

/** A headless Chromium with its own profile, controlled by the DevTools protocol over a pipe. */
export class Chromium implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #profile: string;
  readonly #input: Writable;
  readonly #waiting = new Map<number, PromiseWithResolvers<Readonly<Record<string, unknown>>>>();
  readonly #listeners = new Map<string, Listener>();
  #nextId = 1;
  #rest = "";

  static async start(): Promise<Chromium> {
    const profile = await mkdtemp(join(tmpdir(), "podwright-chromium-"));
    const browser = new Chromium(profile);
    await browser.send("Browser.getVersion", {});
    return browser;
  }

  private constructor(profile: string) {
    this.#profile = profile;
    const flags = [
      "--headless=new",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--no-first-run",
      "--hide-scrollbars",
      "--force-color-profile=srgb",
      "--remote-debugging-pipe",
      `--user-data-dir=${profile}`,
    ];
    this.#process = spawn(program, [...flags, "about:blank"], {
      stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
    });
    this.#input = this.#process.stdio[3] as Writable;
    const output = this.#process.stdio[4] as Readable;
    this.#input.on("error", () => {});
    output.setEncoding("utf8").on("data", (text: string) => this.#read(text));
    this.#process.once("exit", () => this.#fail(new Error("chromium has ended")));
    this.#process.once("error", (error) => this.#fail(error));
  }

  /** @param session undefined: the browser itself */
  async send(
    method: string,
    params: Readonly<Record<string, unknown>>,
    session?: string,
  ): Promise<Readonly<Record<string, unknown>>> {
    const id = this.#nextId++;
    const answer = Promise.withResolvers<Readonly<Record<string, unknown>>>();
    this.#waiting.set(id, answer);
    this.#input.write(
      `${JSON.stringify({ id, method, params, ...(session !== undefined && { sessionId: session }) })}\0`,
    );
    const timer = setTimeout(() => answer.reject(new Error(`chromium did not answer ${method}`)), answerLimitMs);
    try {
      return await answer.promise;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(id);
    }
  }

  /** A page that is loading the address. */
  async open(url: string, view: View): Promise<Page> {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, String(sessionId));
    this.#listeners.set(String(sessionId), (method, params) => page.heard(method, params));
    await page.prepare(view);
    await page.visit(url);
    return page;
  }

  #read(text: string): void {
    const messages = (this.#rest + text).split("\0");
    this.#rest = messages.pop() ?? "";
    for (const each of messages) {
      const { id, sessionId = "", method, params = {}, result = {}, error } = JSON.parse(each) as Message;
      if (id === undefined) this.#listeners.get(sessionId)?.(method ?? "", params);
      else if (error === undefined) this.#waiting.get(id)?.resolve(result);
      else this.#waiting.get(id)?.reject(new Error(error.message));
    }
  }

  #fail(error: Error): void {
    for (const answer of this.#waiting.values()) answer.reject(error);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#process.once("exit", () => resolve());
      this.#process.kill("SIGKILL");
      await promise;
    }
    await rm(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

export interface View {
  readonly width: number;
  readonly height: number;
  readonly dark?: boolean;
  readonly scale?: number;
}

/** One tab, with its requests and problems. */
export class Page {
  readonly #browser: Chromium;
  readonly #session: string;
  /** Addresses of all requests. */
  readonly requests: string[] = [];
  /** Uncaught errors, console errors and warnings, and violations of the content policy. */
  readonly problems: string[] = [];
  /** How often something was dropped because the machine's network changed. */
  networkChanges = 0;
  #loaded = Promise.withResolvers<void>();

  constructor(browser: Chromium, session: string) {
    this.#browser = browser;
    this.#session = session;
  }

  async send(
    method: string,
    params: Readonly<Record<string, unknown>> = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    return await this.#browser.send(method, params, this.#session);
  }

  async prepare({ width, height, dark = false, scale = 1 }: View): Promise<void> {
    await Promise.all(["Page.enable", "Runtime.enable", "Network.enable", "Log.enable"].map((each) => this.send(each)));
    await this.resize(width, height, scale);
    await this.send("Emulation.setEmulatedMedia", {
      features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }],
    });
  }

  async resize(width: number, height: number, scale = 1): Promise<void> {
    const mobile = width < 600;
    await this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: scale, mobile });
  }

  /**
   * Loads the address. Chromium aborts loading when the machine's network interfaces change, as with every new or
   * removed pod: then it is retried.
   */
  async visit(url: string): Promise<void> {
    for (let tries = 0; tries < 5; tries++) {
      const changes = this.networkChanges;
      this.#loaded = Promise.withResolvers<void>();
      await this.send("Page.navigate", { url });
      await this.#loaded.promise;
      if (this.networkChanges === changes) return;
      await this.send("Page.navigate", { url: "about:blank" });
    }
  }

  heard(method: string, params: Readonly<Record<string, unknown>>): void {
    if (method === "Page.loadEventFired") {
      this.#loaded.resolve();
    } else if (method === "Network.requestWillBeSent") {
      this.requests.push((params["request"] as { readonly url: string }).url);
    } else if (method === "Runtime.exceptionThrown") {
      this.problems.push(JSON.stringify(params["exceptionDetails"]));
    } else if (
      method === "Runtime.consoleAPICalled" &&
      ["error", "warning", "assert"].includes(String(params["type"]))
    ) {
      this.problems.push(JSON.stringify(params["args"]));
    } else if (method === "Log.entryAdded") {
      const { level, text } = params["entry"] as { readonly level: string; readonly text: string };
      if (text.includes("ERR_NETWORK_CHANGED")) this.networkChanges++;
      else if (level !== "info" && level !== "verbose") this.problems.push(text);
    }
  }

  /** The value of an expression in the page. */
  async evaluate<T>(expression: string): Promise<T> {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", {
      expression,
      returnByValue: true,
      awaitPromise: true,
    });
    if (exceptionDetails !== undefined) throw new Error(`${expression}: ${JSON.stringify(exceptionDetails)}`);
    return (result as { readonly value: T }).value;
  }

  /** Waits until an expression is true; the error shows the page. */
  async waitFor(what: string, expression: string, limitMs = 60_000): Promise<void> {
    let text = "";
    await until(
      () =>
        `${what}; the page shows:\n${text}\nIts problems: ${this.problems.join("\n")}\nIts requests: ${this.requests.join("\n")}`,
      async () => {
        try {
          text = await this.evaluate<string>("document.body?.innerText ?? ''");
          return await this.evaluate<boolean>(`Boolean(${expression})`);
        } catch (error) {
          // The element may not exist yet, or the page may be loading.
          text = String(error);
          return false;
        }
      },
      limitMs,
    );
  }

  async text(): Promise<string> {
    return await this.evaluate<string>("document.body.innerText");
  }

  /** Presses a key as a person does. */
  async press(key: string): Promise<void> {
    const text = key === "Enter" ? "\r" : key.length === 1 ? key : undefined;
    const codes: Readonly<Record<string, number>> = { Enter: 13, Tab: 9, Escape: 27, ArrowDown: 40 };
    const event = { key, windowsVirtualKeyCode: codes[key] ?? key.toUpperCase().charCodeAt(0) };
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", ...event, ...(text !== undefined && { text }) });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...event });
  }

  /** PNG of the viewport. */
  async screenshot(): Promise<Buffer> {
    const { data } = await this.send("Page.captureScreenshot", { format: "png" });
    return Buffer.from(String(data), "base64");
  }
}
