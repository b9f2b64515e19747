import fc from "fast-check";
import { chosenSeed } from "./seed.ts";

const seed = chosenSeed();
if (seed !== undefined) fc.configureGlobal({ seed });

/** fast-check with the seed of this test run. */
export { fc };
