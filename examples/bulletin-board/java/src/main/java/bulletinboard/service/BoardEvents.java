package bulletinboard.service;

import io.tachograph.api.Record;
import io.tachograph.api.Unit;

/** Events of the board, recorded next to the calls. */
@Record("board_ad")
interface BoardEvents {
    /** Writes a record {@code board_ad_posted}. */
    void posted(long ad, String title, @Unit("ct") long price);
}
