import { start } from "./console.js";

start(window);
