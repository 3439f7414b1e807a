package bulletinboard.service;

import io.tachograph.api.Record;
import io.tachograph.api.Unit;

@Record("board_ad")
interface BoardEvents {
    /** Writes a record {@code board_ad_posted}. */
    void posted(long ad, String title, @Unit("ct") long price);
}
