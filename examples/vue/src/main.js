import { createApp } from "vue";
import Tasks from "./Tasks.vue";

createApp(Tasks).mount("#root");
