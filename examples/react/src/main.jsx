import { createRoot } from "react-dom/client";
import { Tasks } from "./Tasks";

createRoot(document.getElementById("root")).render(<Tasks />);
