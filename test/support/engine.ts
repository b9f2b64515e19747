import { EngineClient } from "../../src/cli/engine-client.ts";
import { unixTransport } from "../../src/linux/http/unix-client.ts";
import { engineAnswers, type Podwright, until, withPodwright } from "./podwright.ts";

/** Passes a {@link Podwright} to the work, with an engine that stays without pods until it is done. */
export async function withEngine(work: (podwright: Podwright) => Promise<void>): Promise<void> {
  await withPodwright(async (podwright) => {
    const { engineSocket, stateDirectory } = podwright.layout;
    const engine = podwright.start(["engine", "--state-dir", stateDirectory, "--stay"]);
    const client = new EngineClient(unixTransport(engineSocket), stateDirectory);
    await until("the engine to answer", () => engineAnswers(client), 30_000);
    await work(podwright);
    engine.child.kill("SIGTERM");
    await engine.ended;
  });
}
