select count(*) LETTERS from WF_DEAD_LETTERS
